//! The sequence: whole numbers of up to 38 digits, exact everywhere.
//!
//! A cursor is compared with a column of one of six types. The parameter is always of the column's own type: with
//! another one the server might convert the column instead, row by row, and scan the table. A decimal is sent as digits and
//! cast by the statement, because the driver would declare it with as many digits as the number at hand has, and
//! the server would make a new plan for each length.

use std::fmt;

use tiberius::{ColumnData, Query};

/// A value of a sequence column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sequence(i128);

/// 10^38 - 1, the largest number of `decimal(38, 0)`.
const LARGEST: i128 = 10_i128.pow(38) - 1;

impl Sequence {
    /// The number, if it has no more than 38 digits.
    pub fn new(number: i128) -> Option<Self> {
        (-LARGEST..=LARGEST).contains(&number).then_some(Self(number))
    }

    /// Reads digits with an optional minus in front, as [`fmt::Display`] writes them.
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix('-').unwrap_or(text);
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        text.parse().ok().and_then(Self::new)
    }

    /// Reads a value of a sequence column; `None` for NULL and for anything that is no whole number.
    pub fn read(value: &ColumnData<'_>) -> Option<Self> {
        match value {
            ColumnData::U8(value) => value.map(|number| Self(number.into())),
            ColumnData::I16(value) => value.map(|number| Self(number.into())),
            ColumnData::I32(value) => value.map(|number| Self(number.into())),
            ColumnData::I64(value) => value.map(|number| Self(number.into())),
            ColumnData::Numeric(Some(number)) if number.scale() == 0 => Self::new(number.value()),
            _ => None,
        }
    }

    /// The number.
    pub fn number(self) -> i128 {
        self.0
    }
}

/// The digits: what a cursor stores and what a record's key is.
impl fmt::Display for Sequence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The type of a sequence column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SequenceType {
    /// 0 to 255.
    TinyInt,
    /// 16 bits.
    SmallInt,
    /// 32 bits.
    Int,
    /// 64 bits.
    BigInt,
    /// `decimal` or `numeric` of this precision and scale 0.
    Decimal(u8),
}

/// What a position means to a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Bound {
    /// Every row lies above it: the statement needs no predicate.
    All,
    /// Rows above this value, which is of the column's type.
    Above(Parameter),
}

/// A value of the column's type, as it is bound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Parameter {
    /// `tinyint`
    TinyInt(u8),
    /// `smallint`
    SmallInt(i16),
    /// `int`
    Int(i32),
    /// `bigint`
    BigInt(i64),
    /// Digits that the statement casts.
    Digits(String),
}

impl Parameter {
    /// Binds the value as the next parameter of `query`.
    pub fn bind(self, query: &mut Query<'_>) {
        match self {
            Self::TinyInt(number) => query.bind(number),
            Self::SmallInt(number) => query.bind(number),
            Self::Int(number) => query.bind(number),
            Self::BigInt(number) => query.bind(number),
            Self::Digits(digits) => query.bind(digits),
        }
    }
}

impl SequenceType {
    /// The smallest and the largest value.
    fn range(self) -> (i128, i128) {
        match self {
            Self::TinyInt => (0, u8::MAX.into()),
            Self::SmallInt => (i16::MIN.into(), i16::MAX.into()),
            Self::Int => (i32::MIN.into(), i32::MAX.into()),
            Self::BigInt => (i64::MIN.into(), i64::MAX.into()),
            Self::Decimal(precision) => {
                let largest = 10_i128.pow(u32::from(precision.min(38))) - 1;
                (-largest, largest)
            }
        }
    }

    /// How a statement writes its parameter number `index` (`@P1` is 1).
    pub fn placeholder(self, index: usize) -> String {
        match self {
            Self::Decimal(precision) => format!("CAST(@P{index} AS decimal({precision}, 0))"),
            _ => format!("@P{index}"),
        }
    }

    /// The value as a parameter, clamped into the type's range.
    pub fn parameter(self, value: Sequence) -> Parameter {
        let (smallest, largest) = self.range();
        let number = value.0.clamp(smallest, largest);
        // The number is in range; the conversions below only change its width.
        match self {
            Self::TinyInt => Parameter::TinyInt(number as u8),
            Self::SmallInt => Parameter::SmallInt(number as i16),
            Self::Int => Parameter::Int(number as i32),
            Self::BigInt => Parameter::BigInt(number as i64),
            Self::Decimal(_) => Parameter::Digits(number.to_string()),
        }
    }

    /// The rows above `position`. A position outside of the type's range (a `start` of -1 for a `tinyint`) is not
    /// sent: below it there are no rows to leave out, and above it no row is left.
    pub fn above(self, position: Option<Sequence>) -> Bound {
        match position {
            Some(position) if position.0 >= self.range().0 => Bound::Above(self.parameter(position)),
            _ => Bound::All,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tiberius::numeric::Numeric;

    use super::*;

    const ALL: [SequenceType; 6] = [
        SequenceType::TinyInt,
        SequenceType::SmallInt,
        SequenceType::Int,
        SequenceType::BigInt,
        SequenceType::Decimal(10),
        SequenceType::Decimal(38),
    ];

    #[test]
    fn thirty_eight_digits_are_kept_and_thirty_nine_refused() {
        let largest = "9".repeat(38);
        assert_eq!(Sequence::parse(&largest).expect("38 digits").to_string(), largest);
        assert_eq!(Sequence::parse(&format!("-{largest}")).expect("38 digits").to_string(), format!("-{largest}"));
        for odd in [&format!("1{}", "0".repeat(38)), "", "-", "+1", "1.0", "1e3", " 1", "0x1", &"9".repeat(60)] {
            assert_eq!(Sequence::parse(odd), None, "{odd}");
        }
    }

    #[test]
    fn a_tinyint_is_unsigned_and_a_decimal_prints_without_a_point() {
        assert_eq!(Sequence::read(&ColumnData::U8(Some(255))).map(|number| number.to_string()).as_deref(), Some("255"));
        let numeric = Numeric::new_with_scale(9_223_372_036_854_775_808, 0);
        assert_eq!(Sequence::read(&ColumnData::Numeric(Some(numeric))).expect("a number").to_string(), "9223372036854775808");
    }

    #[test]
    fn what_is_no_whole_number_is_no_sequence() {
        let odd = [
            ColumnData::I32(None),
            ColumnData::F64(Some(1.0)),
            ColumnData::String(Some("1".into())),
            ColumnData::Numeric(Some(Numeric::new_with_scale(10, 1))),
            ColumnData::Numeric(Some(Numeric::new_with_scale(i128::MIN, 0))),
        ];
        for value in odd {
            assert_eq!(Sequence::read(&value), None, "{value:?}");
        }
    }

    #[test]
    fn the_parameter_is_of_the_columns_type() {
        let seven = Sequence::new(7);
        let bound = |kind: SequenceType| kind.above(seven);
        assert_eq!(bound(SequenceType::TinyInt), Bound::Above(Parameter::TinyInt(7)));
        assert_eq!(bound(SequenceType::SmallInt), Bound::Above(Parameter::SmallInt(7)));
        assert_eq!(bound(SequenceType::Int), Bound::Above(Parameter::Int(7)));
        assert_eq!(bound(SequenceType::BigInt), Bound::Above(Parameter::BigInt(7)));
        assert_eq!(bound(SequenceType::Decimal(18)), Bound::Above(Parameter::Digits("7".into())));
        assert_eq!(SequenceType::Decimal(18).placeholder(2), "CAST(@P2 AS decimal(18, 0))");
        assert_eq!(SequenceType::Int.placeholder(2), "@P2");
    }

    proptest! {
        #[test]
        fn digits_are_read_back(number in -LARGEST..=LARGEST) {
            let sequence = Sequence::new(number).expect("in range");
            prop_assert_eq!(Sequence::parse(&sequence.to_string()), Some(sequence));
        }

        /// Whatever the position, the bound leaves out exactly the values that are not above it.
        #[test]
        fn a_bound_leaves_out_no_row_and_no_more(position in prop_oneof![-400_i128..400, -LARGEST..=LARGEST], row in -400_i128..400) {
            for kind in ALL {
                let (smallest, largest) = kind.range();
                let row = row.clamp(smallest, largest);
                let kept = match kind.above(Sequence::new(position)) {
                    Bound::All => true,
                    Bound::Above(Parameter::TinyInt(bound)) => row > bound.into(),
                    Bound::Above(Parameter::SmallInt(bound)) => row > bound.into(),
                    Bound::Above(Parameter::Int(bound)) => row > bound.into(),
                    Bound::Above(Parameter::BigInt(bound)) => row > bound.into(),
                    Bound::Above(Parameter::Digits(digits)) => row > digits.parse::<i128>().expect("digits"),
                };
                prop_assert_eq!(kept, row > position, "{:?}", kind);
            }
        }
    }
}
