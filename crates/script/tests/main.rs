//! The script engine on the server VM, as creators and attackers meet it. One
//! program, so that it is linked once.

mod api;
mod definition;
mod fairness;
mod hostile;
mod lifecycle;
mod reload;
mod store;
mod support;
