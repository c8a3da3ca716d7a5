//! Finding a kernel by its name, and what to suggest when there is none of that name.

use super::{KERNELS, Kernel};
use schedlab_base::{Error, Release, Result, nearest};

/// The kernel of that name, or of that release: `6.12` and `v6.12.3` are `linux-6.12`.
///
/// # Errors
/// When there is none: the error names the nearest releases, the kernels with a scheduler of that name, or the name
/// that was probably meant.
pub fn find(name: &str) -> Result<&'static Kernel> {
    KERNELS.iter().find(|k| k.name == name).copied().or_else(|| of_release(name)).ok_or_else(|| {
        let mend = by_release(name).or_else(|| by_scheduler(name)).or_else(|| by_letters(name));
        Error::input(format!("there is no kernel \"{name}\"")).mend(mend.unwrap_or_else(|| {
            let names: Vec<_> = KERNELS.iter().map(|k| k.name).collect();
            format!("there are {}", names.join(", "))
        }))
    })
}

/// The newest kernel of Linux that is not newer than this release; the oldest one if all are newer.
#[must_use]
pub fn not_newer_than(release: Release) -> &'static Kernel {
    let mut linux = KERNELS.iter().copied().filter_map(|kernel| Some((kernel.release?, kernel)));
    let oldest = linux.next().expect("there are kernels of Linux");
    linux.take_while(|(own, _)| *own <= release).last().unwrap_or(oldest).1
}

/// The release that the name is the number of, with or without `linux-` or `v` before it.
fn release(name: &str) -> Option<Release> {
    let number = name.strip_prefix("linux-").or_else(|| name.strip_prefix('v')).unwrap_or(name);
    let number = if number.bytes().all(|b| b.is_ascii_digit()) { format!("{number}.0") } else { number.to_owned() };
    number.parse().ok()
}

/// The kernel of exactly this release.
fn of_release(name: &str) -> Option<&'static Kernel> {
    let wanted = Some(release(name)?);
    KERNELS.iter().copied().find(|kernel| kernel.release == wanted)
}

/// The neighbours of a release that is not simulated.
fn by_release(name: &str) -> Option<String> {
    let wanted = release(name)?;
    let releases = || KERNELS.iter().filter_map(|k| Some((k.release?, k.name)));
    let before = releases().rfind(|(release, _)| *release <= wanted);
    let after = releases().find(|(release, _)| *release >= wanted);
    Some(match (before, after) {
        (Some((_, before)), Some((_, after))) => format!("the nearest are {before} and {after}"),
        (Some((_, nearest)), None) | (None, Some((_, nearest))) => format!("the nearest is {nearest}"),
        (None, None) => return None,
    })
}

/// The kernels with the scheduler of that name: `cfs`, `o(1)`, `O1`.
fn by_scheduler(name: &str) -> Option<String> {
    let plain = |text: &str| -> String {
        text.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
    };
    let with: Vec<&Kernel> = KERNELS.iter().copied().filter(|k| plain(k.scheduler) == plain(name)).collect();
    let (last, others) = with.split_last()?;
    let scheduler = last.scheduler;
    Some(match others {
        [] => format!("the kernel with {scheduler} is {}", last.name),
        _ => {
            let others: Vec<_> = others.iter().map(|k| k.name).collect();
            format!("the kernels with {scheduler} are {} and {}", others.join(", "), last.name)
        }
    })
}

fn by_letters(name: &str) -> Option<String> {
    nearest(name, KERNELS.iter().map(|k| k.name)).map(|near| format!("did you mean \"{near}\"?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_profile_of_a_running_kernel_is_not_newer() {
        for (release, name) in [("6.12.94-cloud-amd64", "linux-6.12"), ("6.2", "linux-6.1"), ("0.99", "linux-1.2")] {
            assert_eq!(not_newer_than(release.parse().unwrap()).name, name);
        }
    }

    #[test]
    fn a_release_is_found_by_its_number() {
        for (name, found) in [("6.12", "linux-6.12"), ("v6.12.3", "linux-6.12"), ("2.6.32", "linux-2.6.32")] {
            assert_eq!(find(name).unwrap().name, found);
        }
    }

    #[test]
    fn a_kernel_that_is_not_there_leads_to_the_nearest() {
        for (name, mend) in [
            ("linux-6.17", "the nearest are linux-6.12 and linux-6.18"),
            ("7", "the nearest is linux-6.18"),
            ("linux-0.99", "the nearest is linux-1.2"),
            ("linux-2.6.33", "the nearest are linux-2.6.32 and linux-3.10"),
            ("linux-6.2", "the nearest are linux-6.1 and linux-6.6"),
            ("eevdf", "the kernels with EEVDF are linux-6.6, linux-6.12 and linux-6.18"),
            ("O1", "the kernels with O(1) are linux-2.6.0, linux-2.6.11 and linux-2.6.18"),
            ("Stride", "the kernel with Stride is stride"),
            ("mlqf", "did you mean \"mlfq\"?"),
        ] {
            assert_eq!(find(name).unwrap_err().to_string(), format!("there is no kernel \"{name}\"; {mend}"));
        }
        assert!(find("minix").unwrap_err().to_string().contains("there are linux-1.2, "));
    }
}
