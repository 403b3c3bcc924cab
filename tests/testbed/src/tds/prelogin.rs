//! PRELOGIN: the first message of either side, about versions and encryption (MS-TDS 2.2.6.5).

use bytes::{BufMut as _, BytesMut};

/// What either side says about encryption.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Encryption {
    /// 0: the login alone is encrypted.
    Off,
    /// 1: everything is.
    On,
    /// 2: there is no TLS.
    #[default]
    NotSupported,
    /// 3: everything is, or there is no connection.
    Required,
}

impl Encryption {
    fn byte(self) -> u8 {
        match self {
            Self::Off => 0,
            Self::On => 1,
            Self::NotSupported => 2,
            Self::Required => 3,
        }
    }

    /// What the server answers to a client, by MS-TDS 2.2.6.5: the stronger wish wins, and who cannot says so.
    pub(super) fn answer(self, client: Self) -> Self {
        match (self, client) {
            (Self::NotSupported, _) => Self::NotSupported,
            (Self::Off, Self::NotSupported) => Self::NotSupported,
            (Self::Off, Self::Off) => Self::Off,
            (Self::Off, _) => Self::On,
            // The client is told, and it is the client that leaves.
            (Self::On | Self::Required, Self::NotSupported | Self::Off) => Self::Required,
            (Self::On | Self::Required, _) => Self::On,
        }
    }
}

/// The encryption that the client asks for; nothing said is none supported.
pub(super) fn client_encryption(content: &[u8]) -> Option<Encryption> {
    let mut options = content;
    while let [token, offset_high, offset_low, length_high, length_low, rest @ ..] = options {
        if *token == 0xff {
            break;
        }
        let offset = usize::from(u16::from_be_bytes([*offset_high, *offset_low]));
        let length = usize::from(u16::from_be_bytes([*length_high, *length_low]));
        if *token == 1 {
            return Some(match content.get(offset..offset + length)? {
                [0, ..] => Encryption::Off,
                [1, ..] => Encryption::On,
                [3, ..] => Encryption::Required,
                _ => Encryption::NotSupported,
            });
        }
        options = rest;
    }
    Some(Encryption::NotSupported)
}

/// The server's answer.
pub(super) fn answer(encryption: Encryption) -> BytesMut {
    // Version 16.0.4105, sub-build 2; no instance is checked; no process; one answer at a time.
    let options: [(u8, &[u8]); 5] = [(0, &[16, 0, 0x10, 0x09, 0, 2]), (1, &[encryption.byte()]), (2, &[0]), (3, &[]), (4, &[0])];
    let mut heads = BytesMut::new();
    let mut bodies = BytesMut::new();
    let start = options.len() * 5 + 1;
    for (token, body) in options {
        heads.put_u8(token);
        heads.put_u16(u16::try_from(start + bodies.len()).unwrap_or(0));
        heads.put_u16(u16::try_from(body.len()).unwrap_or(0));
        bodies.put_slice(body);
    }
    heads.put_u8(0xff);
    heads.put_slice(&bodies);
    heads
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_server_says_is_read_as_a_client_reads_it() {
        for encryption in [Encryption::Off, Encryption::On, Encryption::NotSupported, Encryption::Required] {
            assert_eq!(client_encryption(&answer(encryption)), Some(encryption));
        }
        assert_eq!(client_encryption(&[1, 0xff, 0xff, 0xff, 0xff]), None, "an option that lies outside of the message");
    }

    #[test]
    fn the_stronger_wish_wins() {
        assert_eq!(Encryption::Off.answer(Encryption::On), Encryption::On);
        assert_eq!(Encryption::Off.answer(Encryption::Off), Encryption::Off);
        assert_eq!(Encryption::NotSupported.answer(Encryption::Required), Encryption::NotSupported);
        assert_eq!(Encryption::Required.answer(Encryption::NotSupported), Encryption::Required);
    }
}
