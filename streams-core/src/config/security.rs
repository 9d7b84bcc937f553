//! TLS stores and JAAS logins, which Java and librdkafka describe quite differently.

use std::collections::BTreeMap;

use super::translate::Built;

/// Adds librdkafka's properties for Java's `ssl.…` stores and `sasl.jaas.config`.
pub(super) fn translate(settings: &BTreeMap<&str, &str>, built: &mut Built) {
    let get = |key: &str| settings.get(key).copied().filter(|value| !value.is_empty());
    trust_store(&get, built);
    key_store(&get, built);
    if let Some(jaas) = get("sasl.jaas.config") {
        match login(jaas) {
            Ok((user, password)) => {
                built.set("sasl.username", user);
                built.set("sasl.password", password);
            }
            Err(message) => built.refuse("sasl.jaas.config", message),
        }
    }
    if let Some(algorithm) = settings.get("ssl.endpoint.identification.algorithm") {
        // Java switches the check off by empty text.
        built.set(
            "ssl.endpoint.identification.algorithm",
            if algorithm.is_empty() { "none" } else { algorithm },
        );
    }
}

fn trust_store<'s>(get: &impl Fn(&str) -> Option<&'s str>, built: &mut Built) {
    if let Some(certificates) = get("ssl.truststore.certificates") {
        built.set("ssl.ca.pem", certificates);
    }
    if let Some(path) = get("ssl.truststore.location") {
        match store_type(get("ssl.truststore.type"), path) {
            Store::Pem => built.set("ssl.ca.location", path),
            Store::Pkcs12 | Store::Other => built.refuse(
                "ssl.truststore.location",
                "only PEM is read: export the certificates (`keytool -exportcert -rfc`, or `openssl pkcs12 -nokeys`) and set `ssl.truststore.type=PEM`",
            ),
        }
    }
    if get("ssl.truststore.password").is_some() {
        built.warn(
            "ssl.truststore.password",
            "it has no effect here: certificates in PEM have no password",
        );
    }
}

fn key_store<'s>(get: &impl Fn(&str) -> Option<&'s str>, built: &mut Built) {
    if let Some(chain) = get("ssl.keystore.certificate.chain") {
        built.set("ssl.certificate.pem", chain);
    }
    if let Some(key) = get("ssl.keystore.key") {
        built.set("ssl.key.pem", key);
    }
    let Some(path) = get("ssl.keystore.location") else {
        return;
    };
    match store_type(get("ssl.keystore.type"), path) {
        // Java's PEM file holds the key and the certificates.
        Store::Pem => {
            built.set("ssl.certificate.location", path);
            built.set("ssl.key.location", path);
        }
        Store::Pkcs12 => {
            built.set("ssl.keystore.location", path);
            if let Some(password) = get("ssl.keystore.password") {
                built.set("ssl.keystore.password", password);
            }
        }
        Store::Other => built.refuse(
            "ssl.keystore.location",
            "JKS is not read: convert it (`keytool -importkeystore -deststoretype pkcs12`) and set `ssl.keystore.type=PKCS12`",
        ),
    }
}

enum Store {
    Pem,
    Pkcs12,
    Other,
}

/// The type as it is given, else by the file's name. Java takes JKS where nothing is given.
fn store_type(given: Option<&str>, path: &str) -> Store {
    let ending = path.rsplit('.').next().unwrap_or_default();
    match given.unwrap_or(ending).to_ascii_lowercase().as_str() {
        "pem" | "crt" | "cer" => Store::Pem,
        "pkcs12" | "p12" | "pfx" => Store::Pkcs12,
        _ => Store::Other,
    }
}

/// User and password of a JAAS line of the plain and SCRAM modules.
fn login(jaas: &str) -> Result<(String, String), String> {
    let module = jaas.split_whitespace().next().unwrap_or_default();
    let class = module.rsplit('.').next().unwrap_or_default();
    match class {
        "PlainLoginModule" | "ScramLoginModule" => {}
        "OAuthBearerLoginModule" => {
            return Err(
                "give librdkafka's `sasl.oauthbearer.…` properties instead, with `sasl.oauthbearer.method=oidc`"
                    .to_owned(),
            );
        }
        "Krb5LoginModule" => return Err("Kerberos is not compiled in: use PLAIN, SCRAM, OAUTHBEARER or TLS".to_owned()),
        _ => {
            return Err(format!(
                "the login module `{class}` is not known here: give PlainLoginModule or ScramLoginModule"
            ));
        }
    }
    let options = options(jaas);
    let option = |name: &str| {
        let found = options
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.clone());
        found.ok_or_else(|| format!("it has no `{name}=\"…\"`"))
    };
    Ok((option("username")?, option("password")?))
}

/// The `name="value"` pairs of a JAAS line; a backslash keeps the character after it.
fn options(jaas: &str) -> Vec<(String, String)> {
    let mut options = Vec::new();
    let mut name = String::new();
    let mut chars = jaas.chars();
    while let Some(char) = chars.next() {
        match char {
            '=' => options.push((std::mem::take(&mut name), value(&mut chars))),
            ';' => break,
            space if space.is_whitespace() => name.clear(),
            other => name.push(other),
        }
    }
    options
}

fn value(chars: &mut std::str::Chars<'_>) -> String {
    let mut value = String::new();
    let mut quote = None;
    while let Some(char) = chars.clone().next() {
        match (char, quote) {
            // The end of the line belongs to the caller.
            (';', None) => return value,
            ('\\', Some(_)) => {
                chars.next();
                value.extend(chars.next());
                continue;
            }
            ('"' | '\'', None) if value.is_empty() => quote = Some(char),
            (char, Some(open)) if char == open => {
                chars.next();
                return value;
            }
            (space, None) if space.is_whitespace() => return value,
            (other, _) => value.push(other),
        }
        chars.next();
    }
    value
}
