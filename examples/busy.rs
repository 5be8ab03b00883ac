//! A program with one busy function, to try the profiler on: `etwprof -- busy.exe 5` should show `spin` on top.

use std::hint::black_box;
use std::time::{Duration, Instant};

fn main() {
    let seconds = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(5);
    let until = Instant::now() + Duration::from_secs(seconds);
    let mut sum = 0;
    while Instant::now() < until {
        sum ^= spin(sum);
    }
    println!("{sum:x}");
}

/// Some milliseconds of work that no compiler takes away.
#[inline(never)]
fn spin(mut x: u64) -> u64 {
    for round in 0..2_000_000_u64 {
        x = black_box(x ^ round).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23);
    }
    x
}
