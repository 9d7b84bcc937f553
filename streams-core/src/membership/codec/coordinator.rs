//! FindCoordinator v4: which broker leads a group.
//!
//! Source: `FindCoordinatorRequest.json`, `FindCoordinatorResponse.json`, KIP-699 (several keys a request).

use super::Request;
use super::wire::{Reader, Wire, WireError, Writer};

/// Key type of groups.
const GROUP: i8 = 0;

/// Asks for the coordinator of one group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FindCoordinatorRequest {
    /// The group.
    pub group_id: String,
}

/// A coordinator, or why there is none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coordinator {
    /// The group.
    pub key: String,
    /// Broker id; -1 with an error.
    pub node_id: i32,
    /// Its host.
    pub host: String,
    /// Its port.
    pub port: i32,
    /// Error code.
    pub error_code: i16,
    /// Error text.
    pub error_message: Option<String>,
}

impl Request for FindCoordinatorRequest {
    /// One entry per asked group.
    type Response = Vec<Coordinator>;
    const API_KEY: i16 = 10;

    fn write(&self, _version: i16, out: &mut Writer) {
        out.i8(GROUP);
        out.list(std::slice::from_ref(&self.group_id));
        out.no_tags();
    }

    fn read_response(_version: i16, bytes: &mut Reader<'_>) -> Result<Vec<Coordinator>, WireError> {
        let _throttle_time_ms = bytes.i32()?;
        let coordinators = bytes.list()?;
        bytes.skip_tags()?;
        Ok(coordinators)
    }
}

impl Wire for Coordinator {
    fn write(&self, out: &mut Writer) {
        out.string(&self.key);
        out.i32(self.node_id);
        out.string(&self.host);
        out.i32(self.port);
        out.i16(self.error_code);
        out.opt_string(self.error_message.as_deref());
        out.no_tags();
    }

    fn read(bytes: &mut Reader<'_>) -> Result<Self, WireError> {
        let coordinator = Self {
            key: bytes.string()?,
            node_id: bytes.i32()?,
            host: bytes.string()?,
            port: bytes.i32()?,
            error_code: bytes.i16()?,
            error_message: bytes.opt_string()?,
        };
        bytes.skip_tags()?;
        Ok(coordinator)
    }
}
