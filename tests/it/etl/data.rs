//! The real data is whole, so that a test over all of it means what it says.

use crate::support::data;

#[test]
#[cfg_attr(not(real_data), ignore = "needs the recordings of ../shared/data")]
fn every_trace_of_the_index_is_there() {
    let traces = data::traces();
    assert!(traces.len() >= 44, "only {} traces", traces.len());
    assert!(traces.iter().any(|t| t.ends_with("perfview/net.4.5.2.x64.etl")));
}
