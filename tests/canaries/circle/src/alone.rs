// Uses `first`, and nobody uses it: no part of the circle. crate::second in a comment is nothing.
use crate::first::First;

pub struct Alone(First);

#[cfg(test)]
mod tests {
    use crate::second::Second;
}
