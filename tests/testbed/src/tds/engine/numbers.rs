//! Exact numbers: digits and a scale.

/// Ten to this power; `None` beyond 38.
pub fn power(exponent: u8) -> Option<i128> {
    10_i128.checked_pow(exponent.into()).filter(|_| exponent <= 38)
}

/// The digits at another scale, rounded half away from zero.
pub fn rescale(digits: i128, from: u8, to: u8) -> Option<i128> {
    if to >= from {
        return digits.checked_mul(power(to - from)?);
    }
    let divisor = power(from - to)?;
    let (whole, rest) = (digits / divisor, digits % divisor);
    let up = rest.unsigned_abs() >= divisor.unsigned_abs().div_ceil(2);
    Some(if up { whole + digits.signum() } else { whole })
}

/// Do the digits fit so many?
pub fn fits(digits: i128, precision: u8) -> bool {
    power(precision).is_none_or(|limit| digits.unsigned_abs() < limit.unsigned_abs()) && digits.unsigned_abs() < 10_u128.pow(38)
}

/// Digits and a scale as text: `-0.50`.
pub fn text(digits: i128, scale: u8) -> String {
    let sign = if digits < 0 { "-" } else { "" };
    let all = format!("{:0width$}", digits.unsigned_abs(), width = usize::from(scale) + 1);
    let (whole, part) = all.split_at(all.len() - usize::from(scale));
    if scale == 0 { format!("{sign}{whole}") } else { format!("{sign}{whole}.{part}") }
}

/// The digits of a text at a scale, rounded; `None` if it is no number or too large for 128 bits.
pub fn parse(text: &str, scale: u8) -> Option<i128> {
    let text = text.trim();
    let (negative, text) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    if whole.len() + part.len() == 0 || !whole.bytes().chain(part.bytes()).all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    // Digits that no type can hold only round the last that it does.
    let kept = part.get(..part.len().min(usize::from(scale) + 1)).unwrap_or(part);
    let digits: i128 = format!("0{whole}{kept}").parse().ok()?;
    let digits = rescale(digits, u8::try_from(kept.len()).ok()?, scale)?;
    Some(if negative { -digits } else { digits })
}

/// The precision and scale of a literal as SQL Server reads it: `108.000` is `numeric(6, 3)`.
pub fn literal_shape(text: &str) -> (u8, u8) {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let whole = whole.trim_start_matches('0').len();
    let scale = part.len().min(38);
    let precision = (whole + scale).clamp(1, 38);
    (u8::try_from(precision).unwrap_or(38), u8::try_from(scale).unwrap_or(38))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_rounded_half_away_from_zero() {
        assert_eq!(rescale(15, 1, 0), Some(2));
        assert_eq!(rescale(-15, 1, 0), Some(-2));
        assert_eq!(rescale(149, 2, 0), Some(1));
        assert_eq!(text(rescale(5, 0, 4).unwrap(), 4), "5.0000");
        assert_eq!(text(-5, 1), "-0.5");
        assert_eq!(parse("99999999999999999999999999999999999999", 0).map(|digits| text(digits, 0)).unwrap().len(), 38);
        assert_eq!(parse("21.13", 4), Some(211_300));
        assert_eq!(parse("1e5", 4), None);
        assert!(!fits(1_000, 3) && fits(999, 3));
    }
}
