mod caching;
mod certificates;
mod checking;
mod client;
mod serving;
