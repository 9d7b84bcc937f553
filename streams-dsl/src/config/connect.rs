//! Which stores a processor uses.

/// Which stores a processor uses, and its node's name; [`KStream::process_values`](crate::KStream::process_values) shows a
/// processor with a store.
///
/// ```
/// use streams_dsl::Connect;
/// let connect = Connect::stores(["counts", "names"]).with_name("enrich");
/// assert!(format!("{connect:?}").contains("enrich"));
/// ```
///
/// Java counterpart: the `stateStoreNames` and `Named` arguments of `process`.
#[derive(Clone, Debug, Default)]
pub struct Connect {
    pub(crate) name: Option<String>,
    pub(crate) stores: Vec<String>,
}

impl Connect {
    /// No store, and a name for the node.
    #[must_use]
    pub fn named(name: &str) -> Self {
        Connect {
            name: Some(name.to_owned()),
            stores: Vec::new(),
        }
    }

    /// These stores, which were added to the builder by name.
    #[must_use]
    pub fn stores<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        Connect {
            name: None,
            stores: names.into_iter().map(str::to_owned).collect(),
        }
    }

    /// Names the node. Unlike elsewhere, a given name draws no number, as in Java.
    #[must_use]
    pub fn with_name(mut self, name: &str) -> Self {
        self.name = Some(name.to_owned());
        self
    }

    /// One store more.
    #[must_use]
    pub fn store(mut self, name: &str) -> Self {
        self.stores.push(name.to_owned());
        self
    }
}
