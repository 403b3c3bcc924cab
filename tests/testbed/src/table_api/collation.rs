//! How text is compared.
//!
//! The order of identities is the database's own, and a client that compares them by its own rules loses rows or stops
//! at a page in perfect order. So the collation is a setting, and everything that compares text asks it.

use std::borrow::Cow;
use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

/// How the instance's database compares text. A client must take the order as it comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Collation {
    /// By bytes: `Z` before `a`.
    #[default]
    Binary,
    /// Without regard to ASCII case: `a` before `Z`, and `A` equal to `a`.
    CaseInsensitive,
}

impl Collation {
    pub(super) fn compare(self, left: &str, right: &str) -> Ordering {
        match self {
            Self::Binary => left.cmp(right),
            Self::CaseInsensitive => {
                let lower = |text: &str| text.bytes().map(|b| b.to_ascii_lowercase()).collect::<Vec<_>>();
                if left.is_ascii() && right.is_ascii() && left.len().max(right.len()) <= 64 {
                    // Identities: the common case, without an allocation.
                    let (mut left, mut right) = (left.bytes(), right.bytes());
                    return left.by_ref().map(|b| b.to_ascii_lowercase()).cmp(right.by_ref().map(|b| b.to_ascii_lowercase()));
                }
                lower(left).cmp(&lower(right))
            }
        }
    }

    /// The text in the form in which equal texts are the same.
    pub(super) fn fold(self, text: &str) -> Cow<'_, str> {
        match self {
            Self::CaseInsensitive if text.bytes().any(|b| b.is_ascii_uppercase()) => Cow::Owned(text.to_ascii_lowercase()),
            _ => Cow::Borrowed(text),
        }
    }
}
