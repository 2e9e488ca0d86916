//! What Rheo costs beside the bare driver, as ratios inside one run.
fn main() {}
