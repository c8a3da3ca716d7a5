//! From an expression's text to its tree.

use super::functions::FUNCTIONS;
use super::{Expr, Operator, Reference, Selector};
use schedlab_base::{Error, Result, nearest};

/// The longest expression, in bytes. A test's `{siblings}` has some 40 for each core of the machine.
const MAX_LENGTH: usize = 1 << 18;
/// The most operators: each may be a level of the tree.
const MAX_OPERATORS: u32 = 2100;
/// The deepest nesting.
const MAX_DEPTH: u32 = 50;

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Number(f64),
    Name(String),
    Text(String),
    Sign(char),
}

/// Reads an expression.
///
/// # Errors
/// When it is no expression, names an unknown function, or is too long or too deep.
pub fn parse(text: &str) -> Result<Expr> {
    if text.len() > MAX_LENGTH {
        return Err(Error::input(format!("an expression of {} bytes is too long", text.len())));
    }
    let mut parser = Parser { tokens: tokens(text)?, at: 0, depth: 0, operators: 0 };
    let expr = parser.sum()?;
    match parser.peek() {
        None => Ok(expr),
        Some(token) => Err(unexpected(Some(token))),
    }
}

fn unexpected(token: Option<&Token>) -> Error {
    match token {
        None => Error::input("the expression ends too early"),
        Some(Token::Sign(c)) => Error::input(format!("'{c}' does not belong there")),
        Some(Token::Name(n)) => Error::input(format!("\"{n}\" does not belong there")),
        Some(Token::Number(x)) => Error::input(format!("{x} does not belong there")),
        Some(Token::Text(t)) => Error::input(format!("'{t}' does not belong there")),
    }
}

fn tokens(text: &str) -> Result<Vec<Token>> {
    let mut found = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '0'..='9' | '.' => {
                let n = number_length(rest);
                let bad = || Error::input(format!("\"{}\" is no number", &rest[..n]));
                found.push(Token::Number(rest[..n].parse().map_err(|_| bad())?));
                n
            }
            'a'..='z' | 'A'..='Z' | '_' => {
                let n = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '.')).unwrap_or(rest.len());
                found.push(Token::Name(rest[..n].to_owned()));
                n
            }
            '\'' => {
                let end = rest[1..].find('\'').ok_or_else(|| Error::input("a quoted text does not end"))?;
                found.push(Token::Text(rest[1..=end].to_owned()));
                end + 2
            }
            '+' | '-' | '*' | '/' | '^' | '(' | ')' | '[' | ']' | ',' | '=' | '@' => {
                found.push(Token::Sign(first));
                1
            }
            other => return Err(Error::input(format!("{other:?} belongs to no expression"))),
        };
        rest = rest[length..].trim_start();
    }
    Ok(found)
}

fn number_length(text: &str) -> usize {
    let digits = |s: &str| s.find(|c: char| !c.is_ascii_digit()).unwrap_or(s.len());
    let mut n = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    if text[n..].starts_with(['e', 'E']) {
        let sign = usize::from(text[n + 1..].starts_with(['+', '-']));
        let power = digits(&text[n + 1 + sign..]);
        if power > 0 {
            n += 1 + sign + power;
        }
    }
    n
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
    depth: u32,
    operators: u32,
}

impl Parser {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at)
    }

    fn take(&mut self, sign: char) -> bool {
        let found = self.peek() == Some(&Token::Sign(sign));
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, sign: char) -> Result<()> {
        if self.take(sign) {
            return Ok(());
        }
        Err(unexpected(self.peek()).mend(format!("'{sign}' was expected")))
    }

    fn sum(&mut self) -> Result<Expr> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(Error::input("the expression is nested too deep"));
        }
        let mut left = self.product()?;
        loop {
            let operator = match self.peek() {
                Some(Token::Sign('+')) => Operator::Add,
                Some(Token::Sign('-')) => Operator::Subtract,
                _ => break,
            };
            self.operator()?;
            left = Expr::Binary(operator, Box::new(left), Box::new(self.product()?));
        }
        self.depth -= 1;
        Ok(left)
    }

    /// Goes past an operator.
    fn operator(&mut self) -> Result<()> {
        self.at += 1;
        self.operators += 1;
        if self.operators > MAX_OPERATORS {
            return Err(Error::input(format!("an expression of more than {MAX_OPERATORS} operators is too long")));
        }
        Ok(())
    }

    fn product(&mut self) -> Result<Expr> {
        let mut left = self.signed()?;
        loop {
            let operator = match self.peek() {
                Some(Token::Sign('*')) => Operator::Multiply,
                Some(Token::Sign('/')) => Operator::Divide,
                _ => return Ok(left),
            };
            self.operator()?;
            left = Expr::Binary(operator, Box::new(left), Box::new(self.signed()?));
        }
    }

    fn signed(&mut self) -> Result<Expr> {
        let mut negative = false;
        while self.take('-') {
            negative = !negative;
        }
        let base = self.atom()?;
        let value = if self.take('^') {
            let negative_power = self.take('-');
            let power = self.atom()?;
            let power = if negative_power { Expr::Negate(Box::new(power)) } else { power };
            Expr::Binary(Operator::Power, Box::new(base), Box::new(power))
        } else {
            base
        };
        Ok(if negative { Expr::Negate(Box::new(value)) } else { value })
    }

    fn atom(&mut self) -> Result<Expr> {
        let token = self.peek().cloned();
        self.at += 1;
        match token {
            Some(Token::Number(x)) => Ok(Expr::Number(x)),
            Some(Token::Text(text)) => Ok(Expr::Text(text)),
            Some(Token::Sign('(')) => {
                let inner = self.sum()?;
                self.expect(')')?;
                Ok(inner)
            }
            Some(Token::Name(name)) if self.take('(') => self.call(name),
            Some(Token::Name(path)) => self.name(path),
            other => Err(unexpected(other.as_ref())),
        }
    }

    fn call(&mut self, name: String) -> Result<Expr> {
        let known = FUNCTIONS.iter().map(|f| f.name);
        let Some(function) = FUNCTIONS.iter().find(|f| f.name == name) else {
            let mend = nearest(&name, known.clone())
                .map_or_else(|| known.collect::<Vec<_>>().join(", "), |near| format!("did you mean \"{near}\"?"));
            return Err(Error::input(format!("\"{name}\" is no function")).mend(mend));
        };
        let mut args = vec![self.sum()?];
        while self.take(',') {
            args.push(self.sum()?);
        }
        self.expect(')')?;
        if args.len() != function.arguments {
            return Err(Error::input(format!("{name}() got {} of {} arguments", args.len(), function.arguments)));
        }
        Ok(Expr::Call(name, args))
    }

    fn name(&mut self, path: String) -> Result<Expr> {
        let kernel = if self.take('@') {
            match self.peek().cloned() {
                Some(Token::Name(kernel)) => {
                    self.at += 1;
                    Some(kernel)
                }
                other => return Err(unexpected(other.as_ref()).mend("a kernel's name follows '@'")),
            }
        } else {
            None
        };
        let mut selectors = Vec::new();
        if self.take('[') {
            selectors.push(self.selector()?);
            while self.take(',') {
                selectors.push(self.selector()?);
            }
            self.expect(']')?;
        }
        Ok(Expr::Name(Reference { path, kernel, selectors }))
    }

    fn selector(&mut self) -> Result<Selector> {
        match self.peek().cloned() {
            Some(Token::Text(pattern)) => {
                self.at += 1;
                Ok(Selector::Pattern(pattern))
            }
            Some(Token::Name(key)) => {
                self.at += 1;
                self.expect('=')?;
                if self.take('*') { Ok(Selector::All(key)) } else { Ok(Selector::Equal(key, self.sum()?)) }
            }
            other => Err(unexpected(other.as_ref()).mend("write a 'name' or key = value")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_carry_kernels_and_selectors() {
        let Expr::Name(reference) = parse("variance@cfs[n = 3, load=*]").unwrap() else { panic!("a name") };
        assert_eq!((reference.path.as_str(), reference.kernel.as_deref()), ("variance", Some("cfs")));
        assert_eq!(reference.selectors, [Selector::Equal("n".into(), Expr::Number(3.0)), Selector::All("load".into())]);
    }

    #[test]
    fn what_is_no_expression_is_told() {
        for (text, told) in [
            ("", "ends too early"),
            ("1 +", "ends too early"),
            ("(1", "')' was expected"),
            ("mena(x)", "did you mean \"mean\""),
            ("mean(x, y)", "2 of 1 arguments"),
            ("a b", "\"b\" does not belong"),
            ("1..2", "is no number"),
            ("'a", "does not end"),
            ("a[3]", "write a 'name'"),
            ("a$b", "belongs to no expression"),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains(told), "{text}: {error}");
        }
    }

    #[test]
    fn depth_and_length_are_bounded() {
        assert!(parse(&"(".repeat(4000)).is_err());
        assert!(parse(&"1+".repeat(4000)).is_err());
        assert!(parse(&format!("{}1", "-".repeat(4000))).is_ok());
        assert!(parse(&"a[b=".repeat(1000)).is_err());
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "\\PC{0,60}") {
            let _ = parse(&text);
        }

        #[test]
        fn nothing_near_an_expression_panics(text in "[-a-c0-9e.+*/^()\\[\\]@=', ]{0,40}") {
            let _ = parse(&text);
        }
    }
}
