//! How real recordings are shaped. Measured by `scripts/trace-shapes`.

/// The values of a distribution at 0, 10, ... 100 % of what was counted.
type Deciles = [u32; 11];

/// What is drawn from a real recording.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Of all samples.
    pub(super) idle: f64,
    /// An idle sample has a stack, of one frame.
    pub(super) idle_stacks: bool,
    /// Of the samples that are not idle: those of a kernel part and a user part, and those of a kernel part only.
    pub(super) both: f64,
    pub(super) kernel_only: f64,
    /// Frames of the distinct parts of stacks.
    pub(super) kernel_depth: Deciles,
    pub(super) user_depth: Deciles,
    /// The frames that a new part adds to the tree of those that came before it.
    pub(super) kernel_fresh: Deciles,
    pub(super) user_fresh: Deciles,
    /// The share of samples that have one of the most frequent 1, 2, 5, 10, 20, 50 and 100 % of the stacks.
    pub(super) popular: [f64; 7],
    /// The share of the processes with the most samples. The others share the rest.
    pub(super) processes: [f64; 10],
    /// Images in a process.
    pub(super) images: Deciles,
    /// Threads in a process.
    pub(super) threads: Deciles,
    /// For each sample.
    pub(super) switches: f64,
    pub(super) isrs: f64,
    pub(super) dpcs: f64,
    /// Processes with compiled code, and methods that each of them loads and unloads in a second.
    pub(super) managed: u32,
    pub(super) churn: f64,
    pub(super) stack_keys: bool,
    pub(super) compressed: bool,
}

/// xperf/slow-ppt.etl: Windows 7, 8 processors, full stacks, context switches, 17 s.
pub const DESKTOP: Shape = Shape {
    idle: 0.923,
    idle_stacks: true,
    both: 0.202,
    kernel_only: 0.076,
    kernel_depth: [1, 3, 4, 5, 5, 6, 7, 10, 13, 18, 47],
    user_depth: [1, 11, 16, 20, 25, 32, 46, 57, 59, 65, 192],
    kernel_fresh: [0, 1, 1, 1, 1, 2, 2, 3, 5, 7, 41],
    user_fresh: [0, 1, 1, 1, 2, 3, 5, 7, 10, 17, 137],
    popular: [0.479, 0.612, 0.708, 0.775, 0.827, 0.892, 1.0],
    processes: [0.834, 0.040, 0.029, 0.014, 0.014, 0.012, 0.009, 0.009, 0.007, 0.006],
    images: [3, 19, 30, 35, 39, 44, 51, 57, 64, 94, 229],
    threads: [1, 2, 3, 4, 5, 6, 8, 10, 13, 23, 155],
    switches: 0.217,
    isrs: 1.016,
    dpcs: 0.099,
    managed: 0,
    churn: 0.0,
    stack_keys: false,
    compressed: false,
};

/// perfview/net.4.5.2.x64.etl: Windows 8, 8 processors, stack keys, compressed, .NET 4.5, 13 s.
pub const DOTNET: Shape = Shape {
    idle: 0.922,
    idle_stacks: false,
    both: 0.074,
    kernel_only: 0.032,
    kernel_depth: [1, 2, 4, 6, 8, 9, 11, 14, 18, 24, 52],
    user_depth: [1, 12, 17, 18, 18, 19, 20, 25, 32, 40, 111],
    kernel_fresh: [0, 1, 1, 2, 3, 4, 5, 7, 9, 14, 42],
    user_fresh: [0, 1, 1, 1, 1, 1, 1, 4, 9, 16, 61],
    popular: [0.242, 0.296, 0.398, 0.510, 0.660, 0.838, 1.0],
    processes: [0.825, 0.057, 0.045, 0.021, 0.017, 0.017, 0.004, 0.004, 0.003, 0.001],
    images: [2, 14, 20, 27, 33, 48, 56, 66, 73, 117, 172],
    threads: [1, 3, 7, 8, 10, 13, 17, 23, 29, 39, 177],
    switches: 0.0,
    isrs: 0.0,
    dpcs: 0.0,
    managed: 1,
    churn: 23.0, // 290 loads and 288 unloads in 12.6 s
    stack_keys: true,
    compressed: true,
};

impl Shape {
    /// The rank, from 0 to below 1, of the stack that the next sample has; `unit` is from 0 to below 1.
    pub(super) fn rank(&self, unit: f64) -> f64 {
        const RANKS: [f64; 7] = [0.01, 0.02, 0.05, 0.10, 0.20, 0.50, 1.0];
        let (mut share, mut rank) = (0.0, 0.0);
        for (&next_share, &next_rank) in self.popular.iter().zip(&RANKS) {
            if unit < next_share {
                return rank + (next_rank - rank) * (unit - share) / (next_share - share);
            }
            (share, rank) = (next_share, next_rank);
        }
        rank
    }
}
