//! Access rules on a broker, by a request of our own: the client library has none.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

/// What a rule is about. Numbers: `org.apache.kafka.common.resource.ResourceType`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource {
    /// Topics.
    Topic = 2,
    /// Consumer groups.
    Group = 3,
    /// The cluster, by the name `kafka-cluster`.
    Cluster = 4,
    /// Transactional ids.
    TransactionalId = 5,
}

/// What is done with it. Numbers: `org.apache.kafka.common.acl.AclOperation`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Everything.
    All = 2,
    /// Reading.
    Read = 3,
    /// Writing.
    Write = 4,
    /// Creating.
    Create = 5,
    /// Looking at it.
    Describe = 8,
    /// Looking at its settings.
    DescribeConfigs = 10,
}

const CREATE_ACLS: i16 = 30;
const VERSION: i16 = 2;
const DENY: u8 = 2;
const ALLOW: u8 = 3;
const LITERAL: u8 = 3;
const PREFIXED: u8 = 4;

/// Lets everybody do everything with the resources whose names begin with `prefix`, but for one operation. The broker has to
/// have an authorizer, and to allow what it has no rule about.
///
/// # Panics
/// When the broker does not take the rules.
pub fn deny(bootstrap: &str, resource: Resource, prefix: &str, operation: Operation) {
    let mut request = Vec::new();
    request.extend_from_slice(&CREATE_ACLS.to_be_bytes());
    request.extend_from_slice(&VERSION.to_be_bytes());
    request.extend_from_slice(&7_i32.to_be_bytes());
    // The client id, then no tagged fields: the head of a flexible request.
    request.extend_from_slice(&4_i16.to_be_bytes());
    request.extend_from_slice(b"acls\0");
    // Two rules; lengths are one more than they are.
    request.push(3);
    for (operation, permission) in [(Operation::All, ALLOW), (operation, DENY)] {
        request.push(resource as u8);
        text(&mut request, prefix);
        // There is one cluster.
        request.push(if resource == Resource::Cluster {
            LITERAL
        } else {
            PREFIXED
        });
        text(&mut request, "User:ANONYMOUS");
        text(&mut request, "*");
        request.extend_from_slice(&[operation as u8, permission, 0]);
    }
    request.push(0);
    let answer = exchange(bootstrap, &request);
    // Correlation id, tagged fields, throttle time, two results of an error code, an empty message and no tagged fields.
    let result = [0, 0, 1, 0];
    let expected = [&7_i32.to_be_bytes()[..], &[0, 0, 0, 0, 0, 3], &result, &result, &[0]].concat();
    assert_eq!(answer, expected);
}

fn text(out: &mut Vec<u8>, text: &str) {
    let length = u8::try_from(text.len() + 1).unwrap_or_else(|_| panic!("{text} is too long"));
    assert!(length < 128, "{text} is too long");
    out.push(length);
    out.extend_from_slice(text.as_bytes());
}

fn exchange(server: &str, request: &[u8]) -> Vec<u8> {
    let done = || -> std::io::Result<Vec<u8>> {
        let mut stream = TcpStream::connect(server)?;
        stream.set_read_timeout(Some(std::time::Duration::from_secs(60)))?;
        let length = u32::try_from(request.len()).unwrap_or(0);
        stream.write_all(&[&length.to_be_bytes()[..], request].concat())?;
        let mut length = [0; 4];
        stream.read_exact(&mut length)?;
        let mut answer = vec![0; u32::from_be_bytes(length) as usize];
        stream.read_exact(&mut answer)?;
        Ok(answer)
    };
    done().unwrap_or_else(|error| panic!("{server}: {error}"))
}
