pub struct Second(pub Box<crate::first::First>);
