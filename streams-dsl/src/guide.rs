//! The Rust blocks of the user guide (`docs/guide`) as doctests. `tests/guide.rs` checks that no chapter is missing here.

macro_rules! chapters {
    ($($name:ident: $file:literal;)*) => {$(
        #[doc = include_str!(concat!("../../docs/guide/src/", $file))]
        pub struct $name;
    )*};
}

chapters! {
    Introduction: "introduction.md";
    Stateless: "stateless.md";
    Aggregations: "aggregations.md";
    Windows: "windows.md";
    Joins: "joins.md";
    Tables: "tables.md";
    Processors: "processors.md";
    Stores: "stores.md";
    Upgrades: "upgrades.md";
    ErrorHandling: "errors.md";
    Testing: "testing.md";
}
