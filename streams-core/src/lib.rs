//! streams-core
