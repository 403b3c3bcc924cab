//! LOGIN7: who the client is and what it wants (MS-TDS 2.2.6.4).

use std::fmt;

use super::reader::{Read, Reader, Unreadable};

/// What a client said of itself. The password is kept to be checked and is never shown.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct LoginRequest {
    /// The protocol: 0x74000004 is TDS 7.4.
    pub version: u32,
    /// The size of packets that it would like.
    pub packet_size: u32,
    /// The host that it runs on.
    pub host: String,
    /// The login.
    pub user: String,
    /// Its password.
    pub(super) password: String,
    /// The application.
    pub application: String,
    /// The server that it means.
    pub server: String,
    /// The library.
    pub library: String,
    /// The database; empty for the login's default.
    pub database: String,
    /// `ApplicationIntent=ReadOnly`.
    pub read_only: bool,
    /// The features that it asks for, by number.
    pub features: Vec<u8>,
    /// Does it bring a token of Windows or of a federation in place of a password?
    pub(super) foreign: bool,
}

impl fmt::Debug for LoginRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoginRequest")
            .field("user", &self.user)
            .field("database", &self.database)
            .field("server", &self.server)
            .field("application", &self.application)
            .field("read_only", &self.read_only)
            .finish_non_exhaustive()
    }
}

const FEATURE_FEDERATION: u8 = 2;

/// Reads the message.
pub(super) fn decode(content: &[u8]) -> Read<LoginRequest> {
    let mut reader = Reader::new(content);
    let length = reader.u32()? as usize;
    if length > content.len() {
        return Err(Unreadable(format!("the login says {length} bytes and has {}", content.len())));
    }
    let version = reader.u32()?;
    let packet_size = reader.u32()?;
    // Version, process and connection of the client.
    reader.bytes(12)?;
    let _first_options = reader.u8()?;
    let second_options = reader.u8()?;
    let kind = reader.u8()?;
    let third_options = reader.u8()?;
    // Zone and locale.
    reader.bytes(8)?;
    let mut field = || -> Read<(usize, usize)> { Ok((reader.u16()?.into(), reader.u16()?.into())) };
    let (host, user, password, application, server) = (field()?, field()?, field()?, field()?, field()?);
    let extension = field()?;
    let (library, _language, database) = (field()?, field()?, field()?);
    let text = |(offset, units): (usize, usize)| -> Read<String> { at(content, offset)?.text(units) };
    let has_extension = third_options & 0x10 != 0;
    let features = if has_extension { features(content, extension.0)? } else { Vec::new() };
    Ok(LoginRequest {
        version,
        packet_size,
        host: text(host)?,
        user: text(user)?,
        password: unscrambled(content, password)?,
        application: text(application)?,
        server: text(server)?,
        library: text(library)?,
        database: text(database)?,
        read_only: kind & 0x20 != 0,
        foreign: second_options & 0x80 != 0 || features.contains(&FEATURE_FEDERATION),
        features,
    })
}

fn at(content: &[u8], offset: usize) -> Read<Reader<'_>> {
    content.get(offset..).map(Reader::new).ok_or_else(|| Unreadable(format!("offset {offset} lies outside of the login")))
}

/// Each byte has its halves swapped and is then XORed with 0xA5.
fn unscrambled(content: &[u8], (offset, units): (usize, usize)) -> Read<String> {
    let bytes: Vec<u8> = at(content, offset)?.bytes(units * 2)?.iter().map(|byte| (byte ^ 0xa5).rotate_left(4)).collect();
    Reader::new(&bytes).text(units)
}

/// The numbers of the features; each has a length and content behind it.
fn features(content: &[u8], offset: usize) -> Read<Vec<u8>> {
    // The extension's offset leads to the offset of the features.
    let offset = at(content, offset)?.u32()? as usize;
    let mut reader = at(content, offset)?;
    let mut features = Vec::new();
    loop {
        match reader.u8()? {
            0xff => return Ok(features),
            feature => {
                features.push(feature);
                let length = reader.u32()? as usize;
                reader.bytes(length)?;
            }
        }
    }
}
