//! Tries the DLL of a service by itself, in a process of its own (the module [`apart`](super::apart)): loads it, opens it,
//! asks it for all its counters, and closes it. Each step is a question, so that a step that never answers has a name.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::Serialize;

use super::apart::{Apart, AskError};

/// What is done with a DLL, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// It is loaded, and its functions are looked up.
    Load,
    /// Its function `Open`.
    Open,
    /// Its function `Collect`.
    Collect,
    /// Its function `Close`.
    Close,
}

/// Why a step failed.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "failure", rename_all = "snake_case")]
pub enum Failure {
    /// The registry lacks a value of the service.
    NoValue {
        /// `Library`, `Open`, `Collect` or `Close`.
        value: String,
    },
    /// The DLL does not load.
    NotLoaded {
        /// The error code of Windows.
        code: u32,
    },
    /// The DLL does not have a function.
    NoExport {
        /// Its name.
        function: String,
    },
    /// The function returned an error.
    Returned {
        /// The error code.
        code: u32,
    },
    /// It wrote behind the room that it had.
    Overran,
    /// The lengths of what it gave do not fit together.
    WrongLengths,
    /// It ended the process.
    Crashed {
        /// The exit code, which is that of the exception; `None` if it is unknown.
        code: Option<u32>,
    },
    /// It did not return in time.
    Hung {
        /// So many seconds.
        seconds: f64,
    },
}

/// How a DLL did.
#[derive(Clone, Debug, PartialEq)]
pub enum Trial {
    /// It gave objects.
    Works {
        /// How many.
        objects: u32,
        /// Their size.
        bytes: u32,
    },
    /// It failed.
    Failed {
        /// In this step.
        step: Step,
        /// How.
        failure: Failure,
    },
}

impl Trial {
    /// Whether the DLL crashed or hung: it does the same to whoever reads its counters.
    pub fn ends_the_reader(&self) -> bool {
        matches!(self, Trial::Failed { failure: Failure::Crashed { .. } | Failure::Hung { .. }, .. })
    }
}

impl TryFrom<AskError> for Failure {
    type Error = AskError;

    /// Why a question has no answer, unless the process could not be started.
    fn try_from(error: AskError) -> Result<Failure, AskError> {
        match error {
            AskError::Refused(code) => Ok(Failure::Returned { code }),
            AskError::Ended(code) => Ok(Failure::Crashed { code: code.map(i32::cast_unsigned) }),
            AskError::TimeOut(limit) => Ok(Failure::Hung { seconds: limit.as_secs_f64() }),
            AskError::Start(_) => Err(error),
        }
    }
}

/// What begins a question of a trial.
pub const TRY: &str = "try ";

impl Step {
    const ALL: [Step; 4] = [Step::Load, Step::Open, Step::Collect, Step::Close];

    /// The word for it.
    pub fn text(self) -> &'static str {
        match self {
            Step::Load => "load",
            Step::Open => "open",
            Step::Collect => "collect",
            Step::Close => "close",
        }
    }

    /// The step and the service of a question without its [`TRY`].
    pub fn asked(question: &str) -> Option<(Step, &str)> {
        let (step, service) = question.split_once(' ')?;
        Some((Step::ALL.into_iter().find(|known| known.text() == step)?, service))
    }
}

/// Tries the DLL of a service. Each step may take so long.
///
/// # Errors
/// The process cannot be started.
pub fn try_service(apart: &mut Apart, service: &str, limit: Duration) -> Result<Trial, AskError> {
    let mut works = Trial::Works { objects: 0, bytes: 0 };
    for step in Step::ALL {
        let failure = match apart.ask(&format!("{TRY}{} {service}", step.text()), limit) {
            Ok(answer) => match String::from_utf8_lossy(&answer).parse() {
                Ok(Answer::Done) => continue,
                Ok(Answer::Gave { objects, bytes }) => {
                    works = Trial::Works { objects, bytes };
                    continue;
                }
                Ok(Answer::Failed(failure)) => failure,
                // Something else wrote to its output.
                Err(NoAnswer) => Failure::Crashed { code: None },
            },
            Err(error) => Failure::try_from(error)?,
        };
        return Ok(Trial::Failed { step, failure });
    }
    Ok(works)
}

/// The answer to one step, which is text.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// It is done.
    Done,
    /// `Collect` gave objects.
    Gave {
        /// How many.
        objects: u32,
        /// Their size.
        bytes: u32,
    },
    /// It failed.
    Failed(Failure),
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Answer::Done => f.write_str("done"),
            Answer::Gave { objects, bytes } => write!(f, "gave {objects} {bytes}"),
            Answer::Failed(Failure::NoValue { value }) => write!(f, "no-value {value}"),
            Answer::Failed(Failure::NotLoaded { code }) => write!(f, "not-loaded {code}"),
            Answer::Failed(Failure::NoExport { function }) => write!(f, "no-export {function}"),
            Answer::Failed(Failure::Returned { code }) => write!(f, "returned {code}"),
            Answer::Failed(Failure::Overran) => f.write_str("overran"),
            Answer::Failed(Failure::WrongLengths) => f.write_str("wrong-lengths"),
            // Whoever crashed or hangs cannot say so.
            Answer::Failed(Failure::Crashed { .. } | Failure::Hung { .. }) => Err(fmt::Error),
        }
    }
}

/// A text that is no [`Answer`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no answer of a trial")]
pub struct NoAnswer;

impl FromStr for Answer {
    type Err = NoAnswer;

    fn from_str(text: &str) -> Result<Answer, NoAnswer> {
        let number = |text: &str| text.parse().map_err(|_| NoAnswer);
        let (what, rest) = text.split_once(' ').unwrap_or((text, ""));
        Ok(match what {
            "done" => Answer::Done,
            "gave" => {
                let (objects, bytes) = rest.split_once(' ').ok_or(NoAnswer)?;
                Answer::Gave { objects: number(objects)?, bytes: number(bytes)? }
            }
            "no-value" => Answer::Failed(Failure::NoValue { value: rest.to_owned() }),
            "not-loaded" => Answer::Failed(Failure::NotLoaded { code: number(rest)? }),
            "no-export" => Answer::Failed(Failure::NoExport { function: rest.to_owned() }),
            "returned" => Answer::Failed(Failure::Returned { code: number(rest)? }),
            "overran" => Answer::Failed(Failure::Overran),
            "wrong-lengths" => Answer::Failed(Failure::WrongLengths),
            _ => return Err(NoAnswer),
        })
    }
}

/// Whether the objects that a DLL gave are so many, and are all that it gave: each begins with its length.
pub fn lengths_fit(given: &[u8], objects: u32) -> bool {
    let mut rest = given;
    for _ in 0..objects {
        let length = rest.first_chunk().map(|length| u32::from_le_bytes(*length) as usize);
        // An object has a head of 64 bytes.
        match length.filter(|length| *length >= 64).and_then(|length| rest.get(length..)) {
            Some(next) => rest = next,
            None => return false,
        }
    }
    rest.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_reads_back_as_it_was_written() {
        for answer in [
            Answer::Done,
            Answer::Gave { objects: 3, bytes: 4_096 },
            Answer::Failed(Failure::NoValue { value: "Open".to_owned() }),
            Answer::Failed(Failure::NotLoaded { code: 126 }),
            Answer::Failed(Failure::NoExport { function: "Collect My Data".to_owned() }),
            Answer::Failed(Failure::Returned { code: 0xc000_0022 }),
            Answer::Failed(Failure::Overran),
            Answer::Failed(Failure::WrongLengths),
        ] {
            assert_eq!(answer.to_string().parse(), Ok(answer));
        }
        for text in ["", "gave", "gave 3", "gave x 3", "returned", "not-loaded x", "other 3"] {
            assert_eq!(text.parse::<Answer>(), Err(NoAnswer), "{text}");
        }
    }

    #[test]
    fn a_question_has_its_step_and_its_service() {
        assert_eq!(Step::asked("collect .NET CLR Data"), Some((Step::Collect, ".NET CLR Data")));
        assert_eq!(Step::asked("x y"), None);
        assert_eq!(Step::asked("open"), None);
    }

    #[test]
    fn lengths_of_objects_are_all_that_was_given() {
        let mut two = vec![0; 64 + 72];
        two[0] = 64;
        two[64] = 72;
        assert!(lengths_fit(&two, 2) && lengths_fit(&[], 0));
        assert!(!lengths_fit(&two, 1) && !lengths_fit(&two, 3) && !lengths_fit(&two[..130], 2));
        two[0] = 0;
        assert!(!lengths_fit(&two, 2));
    }
}
