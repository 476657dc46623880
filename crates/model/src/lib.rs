//! What a cluster is made of.
