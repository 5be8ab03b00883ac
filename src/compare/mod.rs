//! Two profiles beside each other: what changed from one to the other, and what is noise.
//!
//! 1. *Name*: every node of a call tree gets a [`Name`] whose key is the same in other recordings, on other machines and
//!    in other builds: no address, no process id, no number that a compiler counted up ([`stable()`]).
//! 2. *Add up*: a [`Side`] is one run of a program or several, each a call tree of such names.
//! 3. *Compare*: [`Comparison::new`] has a [`Change`] for each name, and says which are more than chance explains.
//! 4. *Draw*: [`Together`] has the nodes of both sides in one tree.
//! 5. *Decide*: a [`Condition`] fails, passes, or says that there is too little evidence.

mod change;
mod gate;
mod noise;
mod saved;
mod scale;
mod shaped;
mod side;
mod spread;
mod stable;
mod together;

pub use change::{Amount, Change, Comparison, Measure};
pub use gate::{Condition, ConditionError, Growth, Outcome, Verdict};
pub use noise::{Bounds, CONFIDENCE, Needed};
pub use saved::{SavedError, read_saved};
pub use scale::{Factor, Scale, ScaleError};
pub use shaped::Shaped;
pub use side::{Name, NameId, Names, Run, Side, Step};
pub use spread::Dispersion;
pub use stable::stable;
pub use together::Together;
