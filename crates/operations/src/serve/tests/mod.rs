mod caching;
mod certificates;
mod checking;
mod client;
mod flooding;
mod hostile;
mod serving;
mod shedding;
