//! What several configs have in common, once.

use std::collections::BTreeMap;

/// How a store keeps its rows, whoever makes it.
#[derive(Clone, Debug)]
pub(crate) struct StoreSettings {
    pub(crate) caching: bool,
    /// `None` = no changelog; else its topic configs.
    pub(crate) logging: Option<BTreeMap<String, String>>,
    pub(crate) in_memory: bool,
}

impl StoreSettings {
    /// On disk, with a changelog of the usual configs.
    pub(crate) fn with_caching(caching: bool) -> Self {
        StoreSettings {
            caching,
            logging: Some(BTreeMap::new()),
            in_memory: false,
        }
    }

    pub(crate) fn log_with<'a>(&mut self, configs: impl IntoIterator<Item = (&'a str, &'a str)>) {
        let owned = configs.into_iter();
        self.logging = Some(owned.map(|(key, value)| (key.to_owned(), value.to_owned())).collect());
    }
}

/// The store settings of a config with a field `store: StoreSettings`.
macro_rules! store_settings {
    ($config:ident, $caching:literal) => {
        impl<K: 'static, V: 'static> $config<K, V> {
            #[doc = $caching]
            #[must_use]
            pub fn caching(mut self, on: bool) -> Self {
                self.store.caching = on;
                self
            }

            /// No changelog: the rows are gone when their disk is.
            #[must_use]
            pub fn without_logging(mut self) -> Self {
                self.store.logging = None;
                self
            }

            /// Topic configs of the changelog; they win over the usual ones.
            #[must_use]
            pub fn logging<'a>(mut self, configs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
                self.store.log_with(configs);
                self
            }

            /// Keeps the rows in memory; they are restored from the changelog at each start.
            #[must_use]
            pub fn in_memory(mut self) -> Self {
                self.store.in_memory = true;
                self
            }
        }
    };
}
pub(crate) use store_settings;

/// Makers of a config with the fields `name`, `key` and `value`, and of others that are `None` at first.
macro_rules! named_serdes {
    ($config:ident { $($other:ident),* }, $named:literal, $with_name:literal) => {
        impl<K: DefaultSerde, V: DefaultSerde> Default for $config<K, V> {
            fn default() -> Self {
                $config {
                    name: None,
                    key: Chosen::default(),
                    value: Chosen::default(),
                    $($other: None),*
                }
            }
        }

        impl<K: 'static, V: 'static> $config<K, V> {
            /// By these serdes.
            pub fn with(key: impl Serde<K>, value: impl Serde<V>) -> Self {
                $config {
                    name: None,
                    key: Chosen::given(key),
                    value: Chosen::given(value),
                    $($other: None),*
                }
            }

            #[doc = $named]
            pub fn named(name: &str) -> Self
            where
                K: DefaultSerde,
                V: DefaultSerde,
            {
                Self::default().with_name(name)
            }

            #[doc = $with_name]
            #[must_use]
            pub fn with_name(mut self, name: &str) -> Self {
                self.name = Some(name.to_owned());
                self
            }
        }
    };
}
pub(crate) use named_serdes;

/// The partitioner of a config with a field `partitioner`.
macro_rules! partitioned {
    ($config:ident) => {
        impl<K: 'static, V: 'static> $config<K, V> {
            /// Chooses partitions by `(topic, key, value, partition count)`. Default: murmur2 of the key's bytes, as Java; a
            /// null key is placed by the client. Java: `StreamPartitioner`.
            #[must_use]
            pub fn partitioned_by(
                mut self,
                partitioner: impl Fn(&str, &K, &V, i32) -> Partitions + Send + Sync + 'static,
            ) -> Self {
                self.partitioner = Some(Arc::new(partitioner));
                self
            }
        }
    };
}
pub(crate) use partitioned;
