//! Packets: how messages are cut and put together again (MS-TDS 2.2.3).
//!
//! A message is one packet or several; each has eight bytes in front: type, status, length (big-endian, with these eight),
//! process, number, window. Status 1 marks the last one.

use std::io;

use bytes::{BufMut as _, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt as _};

/// Bytes in front of a packet's content.
pub(super) const HEADER: usize = 8;

/// What a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Batch,
    Rpc,
    Attention,
    Bulk,
    TransactionManager,
    Login,
    Prelogin,
    Other(u8),
}

impl Kind {
    fn of(byte: u8) -> Self {
        match byte {
            0x01 => Self::Batch,
            0x03 => Self::Rpc,
            0x06 => Self::Attention,
            0x07 => Self::Bulk,
            0x0e => Self::TransactionManager,
            0x10 => Self::Login,
            0x12 => Self::Prelogin,
            other => Self::Other(other),
        }
    }
}

/// A whole message of the client.
#[derive(Debug)]
pub(super) struct Message {
    pub kind: Kind,
    pub content: BytesMut,
    /// How many packets it came in.
    pub packets: usize,
    /// The client asks for a fresh session first (status 0x08 or 0x10).
    pub reset: bool,
}

/// The longest message that is put together; what is longer is no statement.
const LONGEST: usize = 64 << 20;

/// Reads one packet: its type, whether it is the last of its message, its status, its content.
pub(super) async fn packet(stream: &mut (impl AsyncRead + Unpin + ?Sized), content: &mut BytesMut) -> io::Result<Option<(u8, u8)>> {
    let mut header = [0; HEADER];
    match stream.read(&mut header[..1]).await? {
        0 => return Ok(None),
        _ => stream.read_exact(&mut header[1..]).await?,
    };
    let length = usize::from(u16::from_be_bytes([header[2], header[3]]));
    let length =
        length.checked_sub(HEADER).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "a packet is shorter than its header"))?;
    if content.len() + length > LONGEST {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "a message is longer than 64 MiB"));
    }
    let before = content.len();
    content.resize(before + length, 0);
    stream.read_exact(&mut content[before..]).await?;
    Ok(Some((header[0], header[1])))
}

/// Reads a message; `None` when the client has gone.
pub(super) async fn message(stream: &mut (impl AsyncRead + Unpin + ?Sized)) -> io::Result<Option<Message>> {
    let mut content = BytesMut::new();
    let mut first = None;
    let mut packets = 0;
    loop {
        let Some((kind, status)) = packet(stream, &mut content).await? else {
            return if packets == 0 { Ok(None) } else { Err(io::ErrorKind::UnexpectedEof.into()) };
        };
        packets += 1;
        let (kind, reset) = *first.get_or_insert((kind, status & 0x18 != 0));
        if status & 0x01 != 0 {
            // A message that is given up in the middle (0x02) has no answer of its own; an attention follows.
            if status & 0x02 != 0 {
                content.clear();
                first = None;
                packets = 0;
                continue;
            }
            return Ok(Some(Message { kind: Kind::of(kind), content, packets, reset }));
        }
    }
}

/// Cuts an answer into packets of the negotiated size as it grows.
#[derive(Debug)]
pub(super) struct Packets {
    size: usize,
    kind: u8,
    number: u8,
    /// What waits for the packet to be full.
    content: BytesMut,
}

impl Packets {
    /// Packets of an answer; `size` counts the header.
    pub fn new(size: usize) -> Self {
        Self::of_kind(0x04, size)
    }

    pub fn of_kind(kind: u8, size: usize) -> Self {
        Self { size: size.max(HEADER + 1), kind, number: 1, content: BytesMut::new() }
    }

    pub fn put(&mut self, bytes: &[u8]) {
        self.content.put_slice(bytes);
    }

    /// The packets that are full. What may still be the last packet is kept, since only that one is marked.
    pub fn full(&mut self) -> BytesMut {
        let mut out = BytesMut::new();
        let room = self.size - HEADER;
        while self.content.len() > room {
            let content = self.content.split_to(room);
            self.packet(&mut out, &content, false);
        }
        out
    }

    pub fn has_full(&self) -> bool {
        self.content.len() > self.size - HEADER
    }

    pub fn is_empty(&self) -> bool {
        self.content.is_empty()
    }

    /// What there is, in packets of which none is the last.
    pub fn part(&mut self) -> BytesMut {
        let mut out = self.full();
        let content = self.content.split();
        if !content.is_empty() {
            self.packet(&mut out, &content, false);
        }
        out
    }

    /// What is left, as the last packet.
    pub fn last(&mut self) -> BytesMut {
        let mut out = self.full();
        let content = self.content.split();
        self.packet(&mut out, &content, true);
        out
    }

    fn packet(&mut self, out: &mut BytesMut, content: &[u8], last: bool) {
        out.reserve(HEADER + content.len());
        out.put_u8(self.kind);
        out.put_u8(u8::from(last));
        out.put_u16(u16::try_from(HEADER + content.len()).unwrap_or(u16::MAX));
        out.put_u16(51);
        out.put_u8(self.number);
        out.put_u8(0);
        out.put_slice(content);
        self.number = self.number.wrapping_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_answer_of_any_length_comes_in_packets_of_the_size_and_only_the_last_is_marked() {
        for length in [0_usize, 1, 503, 504, 505, 1008, 1009, 100_000] {
            let mut packets = Packets::new(512);
            let sent: Vec<u8> = (0..length).map(|at| (at % 251) as u8).collect();
            let mut wire = BytesMut::new();
            for chunk in sent.chunks(100) {
                packets.put(chunk);
                wire.extend_from_slice(&packets.full());
            }
            wire.extend_from_slice(&packets.last());
            let mut stream = &wire[..];
            let message = message(&mut stream).await.unwrap().unwrap();
            assert_eq!(message.content, sent);
            assert_eq!(message.packets, length.div_ceil(504).max(1));
            assert!(stream.is_empty());
        }
    }
}
