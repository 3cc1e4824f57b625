//! The engine through its public API. CONTRIBUTING.md says which file tests what.

mod any;
mod build;
mod cancelled;
mod corruption;
mod exactness;
mod golden;
mod join_parts;
mod join_places;
mod killed;
mod layers;
mod live;
mod live_corruption;
mod live_power_loss;
mod names_and_notes;
mod numbers;
mod over_logs;
mod power_loss;
mod public_api;
mod rings;
mod rules;
mod salvage;
mod segments;
mod short_calls;
mod simulated_disk;
mod support;
