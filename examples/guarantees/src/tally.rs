//! What is in the outputs, compared with what was put in.

use std::fmt;

use streams_dsl::ProcessingGuarantee;

/// What became of the orders.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Orders put in.
    pub orders: usize,
    /// Orders that are not in the output.
    pub lost: usize,
    /// Orders that are in the output more than once.
    pub doubled: usize,
    /// The last counts of all customers, added up.
    pub counted: i64,
}

impl Tally {
    /// Compares outputs with orders 0 to `orders` − 1: the shipped orders' numbers, and the last count of each customer.
    pub fn new(
        orders: usize,
        shipped: impl IntoIterator<Item = usize>,
        last_counts: impl IntoIterator<Item = i64>,
    ) -> Self {
        let mut times = vec![0_usize; orders];
        for number in shipped {
            if let Some(times) = times.get_mut(number) {
                *times += 1;
            }
        }
        Tally {
            orders,
            lost: times.iter().filter(|times| **times == 0).count(),
            doubled: times.iter().filter(|times| **times > 1).count(),
            counted: last_counts.into_iter().sum(),
        }
    }

    /// What the guarantee does not allow; empty if it was kept.
    #[must_use]
    pub fn broken(&self, guarantee: ProcessingGuarantee) -> Vec<String> {
        let orders = i64::try_from(self.orders).unwrap_or(i64::MAX);
        let (may_lose, may_double) = match guarantee {
            ProcessingGuarantee::ExactlyOnceV2 => (false, false),
            ProcessingGuarantee::AtLeastOnce => (false, true),
            ProcessingGuarantee::AtMostOnce => (true, false),
        };
        let findings = [
            (self.lost > 0 && !may_lose, format!("{} orders are lost", self.lost)),
            (
                self.doubled > 0 && !may_double,
                format!("{} orders are doubled", self.doubled),
            ),
            (
                self.counted < orders && !may_lose,
                format!("{} of {orders} orders are counted", self.counted),
            ),
            (
                self.counted > orders && !may_double,
                format!("{} orders are counted, there are {orders}", self.counted),
            ),
        ];
        let broken = findings.into_iter().filter(|(is_broken, _)| *is_broken);
        broken.map(|(_, finding)| finding).collect()
    }
}

/// A row of the table.
impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Tally {
            orders,
            lost,
            doubled,
            counted,
        } = self;
        let off = counted - i64::try_from(*orders).unwrap_or(i64::MAX);
        write!(f, "{orders:>8} {lost:>8} {doubled:>8} {counted:>10} {off:>+8}")
    }
}

/// The head of the table.
#[must_use]
pub fn head() -> String {
    format!(
        "{:<18} {:>8} {:>8} {:>8} {:>10} {:>8}",
        "guarantee", "orders", "lost", "doubled", "counted", "off by"
    )
}
