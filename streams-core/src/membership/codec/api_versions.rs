//! ApiVersions: what a broker offers, and whether its streams groups are switched on.
//!
//! Source: `ApiVersionsRequest.json`, `ApiVersionsResponse.json`, KIP-511, KIP-584 (finalized features).

use super::Request;
use super::wire::{Reader, Wire, WireError, Writer};

/// Asks for the offered versions. Version 3 names this library; version 0 has no body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ApiVersionsRequest;

/// The feature whose level 1 switches streams groups on (`StreamsVersion`).
pub const STREAMS_FEATURE: &str = "streams.version";

/// `UNSUPPORTED_VERSION`: the answer is then in the form of version 0.
const UNSUPPORTED_VERSION: i16 = 35;
/// Tag of the finalized features in the answer.
const FINALIZED_FEATURES_TAG: u32 = 2;

/// What the broker offers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ApiVersionsResponse {
    /// Error code; 35 means that the asked version is too new, `api_keys` then has at least ApiVersions itself.
    pub error_code: i16,
    /// Offered requests.
    pub api_keys: Vec<ApiVersion>,
    /// Finalized features with their level; `None` when the answer has no room for them (version 0).
    pub finalized_features: Option<Vec<Feature>>,
}

/// Versions of one request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ApiVersion {
    /// Key of the request.
    pub api_key: i16,
    /// Lowest version.
    pub min: i16,
    /// Highest version.
    pub max: i16,
}

/// A finalized feature.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Feature {
    /// Its name.
    pub name: String,
    /// Its level.
    pub level: i16,
}

impl ApiVersionsResponse {
    /// The highest version of `api_key` that the broker offers and that is not above `ours`.
    pub fn highest(&self, api_key: i16, ours: i16) -> Option<i16> {
        let offered = self.api_keys.iter().find(|offered| offered.api_key == api_key)?;
        let version = offered.max.min(ours);
        (version >= offered.min && version >= 0).then_some(version)
    }

    /// Level of `streams.version`: 0 when it is not finalized, `None` when the answer cannot tell.
    ///
    /// The key of the heartbeat is no proof: a 4.4 broker lists it with `streams.version=0` too, and then refuses it.
    pub fn streams_version(&self) -> Option<i16> {
        let features = self.finalized_features.as_ref()?;
        Some(
            features
                .iter()
                .find(|feature| feature.name == STREAMS_FEATURE)
                .map_or(0, |feature| feature.level),
        )
    }
}

impl Request for ApiVersionsRequest {
    type Response = ApiVersionsResponse;
    const API_KEY: i16 = 18;
    const TAGS_IN_RESPONSE_HEADER: bool = false;

    fn flexible(version: i16) -> bool {
        version >= 3
    }

    fn write(&self, version: i16, out: &mut Writer) {
        if version >= 3 {
            out.string("kafka-streams-rust");
            out.string(env!("CARGO_PKG_VERSION"));
            out.no_tags();
        }
    }

    fn read_response(version: i16, bytes: &mut Reader<'_>) -> Result<ApiVersionsResponse, WireError> {
        let error_code = bytes.i16()?;
        if version < 3 || error_code == UNSUPPORTED_VERSION {
            return read_v0(error_code, bytes);
        }
        let api_keys = bytes.list()?;
        let _throttle_time_ms = bytes.i32()?;
        let mut finalized = Vec::new();
        for (tag, content) in bytes.tags()? {
            if tag == FINALIZED_FEATURES_TAG {
                let mut content = Reader::new(content);
                finalized = content.list()?;
                content.end()?;
            }
        }
        Ok(ApiVersionsResponse {
            error_code,
            api_keys,
            finalized_features: Some(finalized),
        })
    }
}

fn read_v0(error_code: i16, bytes: &mut Reader<'_>) -> Result<ApiVersionsResponse, WireError> {
    let count = bytes.i32()?;
    let mut api_keys = Vec::new();
    for _ in 0..count.max(0) {
        api_keys.push(ApiVersion {
            api_key: bytes.i16()?,
            min: bytes.i16()?,
            max: bytes.i16()?,
        });
    }
    Ok(ApiVersionsResponse {
        error_code,
        api_keys,
        finalized_features: None,
    })
}

impl Wire for ApiVersion {
    fn write(&self, out: &mut Writer) {
        out.i16(self.api_key);
        out.i16(self.min);
        out.i16(self.max);
        out.no_tags();
    }

    fn read(bytes: &mut Reader<'_>) -> Result<Self, WireError> {
        let version = Self {
            api_key: bytes.i16()?,
            min: bytes.i16()?,
            max: bytes.i16()?,
        };
        bytes.skip_tags()?;
        Ok(version)
    }
}

impl Wire for Feature {
    fn write(&self, out: &mut Writer) {
        out.string(&self.name);
        out.i16(self.level);
        out.i16(self.level);
        out.no_tags();
    }

    fn read(bytes: &mut Reader<'_>) -> Result<Self, WireError> {
        let name = bytes.string()?;
        // The level is the maximum of a range whose minimum says nothing to us.
        let level = bytes.i16()?;
        let _min = bytes.i16()?;
        bytes.skip_tags()?;
        Ok(Self { name, level })
    }
}
