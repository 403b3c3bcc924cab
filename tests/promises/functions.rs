//! The two functions as they run in the cloud: the real programs, as processes that are frozen between invocations and
//! killed at their deadline, between a simulated instance, a real Kafka and a DynamoDB over sockets.

mod bed;
mod catch_up;
mod cost;
mod deadlines;
mod events;
mod faults;
mod metrics;
mod rotation;
mod ticks;
