//! What stands out in a recording: every rule on a recording that was built for it and on none that was not, and what the
//! real recordings show.

mod built;
mod machine;
mod real;
mod rules;
mod runtime;
mod waits;
