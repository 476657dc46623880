//! What people should know who ask why a quota rejects a pod: what is lacking, who has lent, and who has borrowed.

use supercargo_framework::Context;
use supercargo_model::names::resource;
use supercargo_model::{Pod, Quantity};

use super::amounts::sum;
use super::elastic_quota::{Quota, quota_of, quotas};
use super::usage::{QuotaState, used_in};

/// So many other namespaces are named.
const NAMESPACES_MAX: usize = 5;

/// Amounts by resource, in the scheduler's units.
type Amounts = Vec<(String, i64)>;

/// Why a quota rejects a pod, as `the quota of namespace team-a lacks 2 cpu; team-b has lent 3 cpu`; none if none does.
pub(super) fn background(context: &Context<'_>, pod: &Pod) -> Option<String> {
    let (state, quota) = (QuotaState::of(context, pod), quota_of(context, &pod.namespace)?);
    let wanted = sum(used_in(context, &pod.namespace), &state.in_quota);
    let above_max = lacking(quota.max.excess(&wanted, state.unbounded));
    let namespace = &pod.namespace;
    if !above_max.is_empty() {
        let lacking = words(&above_max);
        return Some(format!(
            "the quota of namespace {namespace} lacks {lacking}: its max would be exceeded"
        ));
    }
    let all = sum(&state.total_used, &state.in_all);
    let above_min = lacking(state.total_min.excess(&all, state.unbounded));
    if above_min.is_empty() {
        return None;
    }
    let own = format!("the quota of namespace {namespace} lacks {}", words(&above_min));
    let others = quotas(context).filter(|quota| *quota.namespace != **namespace);
    let others = others.filter_map(|quota| account(context, quota, &state, &above_min)).take(NAMESPACES_MAX);
    Some([own].into_iter().chain(others).collect::<Vec<_>>().join("; "))
}

/// What a namespace has lent, and borrowed, of the resources that the pod lacks.
fn account(context: &Context<'_>, quota: Quota<'_>, state: &QuotaState, lacking: &Amounts) -> Option<String> {
    let used = used_in(context, quota.namespace);
    let mut excess = quota.object.min.excess(used, state.unbounded_mins);
    excess.retain(|(name, amount)| *amount != 0 && lacking.iter().any(|(lacking, _)| lacking == name));
    let (lent, borrowed): (Amounts, Amounts) = excess.into_iter().partition(|(_, amount)| *amount < 0);
    let lent: Amounts = lent.into_iter().map(|(name, amount)| (name, amount.saturating_neg())).collect();
    let parts = [("lent", lent), ("borrowed", borrowed)];
    let parts = parts.iter().filter(|(_, amounts)| !amounts.is_empty());
    let parts: Vec<String> = parts.map(|(what, amounts)| format!("has {what} {}", words(amounts))).collect();
    (!parts.is_empty()).then(|| format!("{} {}", quota.namespace, parts.join(" and ")))
}

fn lacking(excess: Amounts) -> Amounts {
    excess.into_iter().filter(|(_, amount)| *amount > 0).collect()
}

/// Amounts as people write them: `2 cpu, 1Gi memory`.
fn words(amounts: &Amounts) -> String {
    let word = |(name, amount): &(String, i64)| {
        let quantity = if name == resource::CPU { Quantity::milli(*amount) } else { Quantity::from(*amount) };
        format!("{quantity} {name}")
    };
    amounts.iter().map(word).collect::<Vec<_>>().join(", ")
}
