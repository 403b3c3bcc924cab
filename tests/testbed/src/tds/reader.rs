//! Reading fields out of a message. Everything may be missing: a client that is not what it says gets an error.

/// A message that is cut short or says what it may not.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the request cannot be read: {0}")]
pub(super) struct Unreadable(pub String);

pub(super) type Read<T> = Result<T, Unreadable>;

/// A place in a message.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub fn bytes(&mut self, length: usize) -> Read<&'a [u8]> {
        let (bytes, rest) = self.rest.split_at_checked(length).ok_or_else(|| Unreadable(format!("{length} bytes are missing")))?;
        self.rest = rest;
        Ok(bytes)
    }

    fn array<const N: usize>(&mut self) -> Read<[u8; N]> {
        let mut array = [0; N];
        array.copy_from_slice(self.bytes(N)?);
        Ok(array)
    }

    pub fn u8(&mut self) -> Read<u8> {
        Ok(self.array::<1>()?[0])
    }

    pub fn u16(&mut self) -> Read<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub fn u32(&mut self) -> Read<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub fn u64(&mut self) -> Read<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// UTF-16 of so many units.
    pub fn units(&mut self, units: usize) -> Read<Vec<u16>> {
        Ok(self.bytes(units * 2)?.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect())
    }

    pub fn text(&mut self, units: usize) -> Read<String> {
        self.units(units).map(|units| String::from_utf16_lossy(&units))
    }

    /// A text with one byte of length in front.
    pub fn short_text(&mut self) -> Read<String> {
        let units = self.u8()?;
        self.text(units.into())
    }

    /// The headers in front of a batch or a call: their length with itself, then transaction and other descriptors.
    pub fn skip_headers(&mut self) -> Read<()> {
        let length = self.u32()? as usize;
        let rest = length.checked_sub(4).ok_or_else(|| Unreadable("the headers are shorter than their length".to_owned()))?;
        self.bytes(rest).map(drop)
    }
}
