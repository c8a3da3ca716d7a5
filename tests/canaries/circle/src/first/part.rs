use crate::{Second as Other};

pub struct Part(Option<Box<Other>>);
