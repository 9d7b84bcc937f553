//! streams-dsl
