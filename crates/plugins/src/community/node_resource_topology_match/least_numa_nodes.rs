//! The strategy LeastNUMANodes: the fewer zones a pod needs, and the nearer they are to each other, the better.

use std::borrow::Cow;

use supercargo_framework::{Fixes, MAX_NODE_SCORE};
use supercargo_model::{PodSpec, Quantity, ResourceList};

use super::topology::{NodeResourceTopology, Scope, Zone};
use super::wants::{all_containers, of_zones, pod_requests};

/// How far zones are from each other if nobody says: as far as can be.
const FARTHEST: i64 = 255;
/// Zones that are as far from each other, or farther, are not taken together, as upstream.
const TOO_FAR: f32 = 256.0;
/// So many sets of zones of one size are looked at. A node with more of them, which has some twenty zones, gets no points for pods that
/// need so many.
const SETS_MAX: usize = 1 << 16;

/// The points of a node for a guaranteed pod.
pub(super) fn points(spec: &PodSpec, topology: &NodeResourceTopology, fixes: Fixes) -> i64 {
    let mut zones = Cow::Borrowed(&topology.zones[..]);
    let found = match topology.manager.scope {
        Scope::Pod => {
            let requests = pod_requests(spec, fixes);
            let requests = of_zones(&requests, topology, fixes);
            if !names_any(&requests, topology) {
                return MAX_NODE_SCORE;
            }
            nearest_zones(&zones, &requests)
        }
        Scope::Container => {
            let mut needed: Option<Zones> = None;
            for container in all_containers(spec) {
                let requests = of_zones(&container.resources.requests, topology, fixes);
                if !names_any(&requests, topology) {
                    continue;
                }
                let Some(found) = nearest_zones(&zones, &requests) else { return 0 };
                take(zones.to_mut(), &requests, &found.places);
                needed = Some(match needed {
                    None => found,
                    Some(before) => before.and(found),
                });
            }
            match needed {
                None => return MAX_NODE_SCORE,
                needed => needed,
            }
        }
    };
    let Some(found) = found else { return 0 };
    let unit = MAX_NODE_SCORE / topology.manager.max_numa_nodes(fixes.single_numa_node_maximum);
    let nearest = if found.are_nearest { unit / 2 } else { 0 };
    let points = MAX_NODE_SCORE - found.places.len() as i64 * unit + nearest;
    // As upstream, a node that has more zones than it says may get less than nothing.
    if fixes.numa_node_points { points.max(0) } else { points }
}

/// Zones that have what somebody asks for, by their places.
struct Zones {
    places: Vec<usize>,
    /// Whether no other zones, of as many, are nearer to each other.
    are_nearest: bool,
}

impl Zones {
    /// The more of them, and nearest only if both are.
    fn and(self, other: Zones) -> Zones {
        let are_nearest = self.are_nearest && other.are_nearest;
        let places = if other.places.len() > self.places.len() { other.places } else { self.places };
        Zones { places, are_nearest }
    }
}

/// Whether any zone has a resource that is asked for.
fn names_any(requests: &ResourceList, topology: &NodeResourceTopology) -> bool {
    requests.iter().any(|(name, _)| topology.lists(name))
}

/// The fewest zones that have together what is asked for; of several such, those that are nearest to each other.
fn nearest_zones(zones: &[Zone], requests: &ResourceList) -> Option<Zones> {
    (1..=zones.len()).take_while(|size| count_sets(zones.len(), *size) <= SETS_MAX).find_map(|size| {
        let mut fitting = Sets::new(zones.len(), size).filter(|set| fits(zones, requests, set)).peekable();
        // Most often too few zones have nothing that fits: how far they are from each other is no matter then.
        fitting.peek()?;
        let least = Sets::new(zones.len(), size).map(|set| distance(zones, &set));
        let least = least.fold(FARTHEST as f32, f32::min);
        let mut best: Option<(f32, Vec<usize>)> = None;
        for set in fitting {
            let distance = distance(zones, &set);
            if distance == least {
                return Some(Zones { places: set, are_nearest: true });
            }
            if distance < best.as_ref().map_or(TOO_FAR, |(best, _)| *best) {
                best = Some((distance, set));
            }
        }
        best.map(|(_, places)| Zones { places, are_nearest: false })
    })
}

/// Whether zones have together what is asked for, each of them something of all of it.
fn fits(zones: &[Zone], requests: &ResourceList, set: &[usize]) -> bool {
    requests.iter().all(|(name, wanted)| {
        let mut sum = Quantity::default();
        for place in set {
            let Some(available) = zones[*place].available(name) else { return false };
            sum += available;
        }
        wanted.is_zero() || sum >= *wanted
    })
}

/// The mean distance of each zone to each, itself among them.
fn distance(zones: &[Zone], set: &[usize]) -> f32 {
    let cost = |from: usize, to: usize| zones[from].cost_of(zones[to].number).unwrap_or(FARTHEST);
    let pairs = set.iter().flat_map(|from| set.iter().map(move |to| (*from, *to)));
    let sum = pairs.fold(0i64, |sum, (from, to)| sum.wrapping_add(cost(from, to)));
    sum as f32 / (set.len() * set.len()) as f32
}

/// Takes what is asked for out of zones, as much as there is from one after the other.
fn take(zones: &mut [Zone], requests: &ResourceList, set: &[usize]) {
    for (name, wanted) in requests.iter() {
        let mut wanted = wanted.clone();
        for place in set {
            let Some(available) = zones[*place].available_mut(name) else { continue };
            let taken = available.clone().min(wanted.clone());
            *available -= &taken;
            wanted -= &taken;
        }
    }
}

/// How many sets of so many things there are, or a number above [`SETS_MAX`].
fn count_sets(count: usize, size: usize) -> usize {
    let size = size.min(count - size);
    (0..size)
        .try_fold(1usize, |sets, chosen| {
            let sets = sets * (count - chosen) / (chosen + 1);
            (sets <= SETS_MAX).then_some(sets)
        })
        .unwrap_or(SETS_MAX + 1)
}

/// All sets of so many places, in the order of their members.
struct Sets {
    next: Option<Vec<usize>>,
    count: usize,
}

impl Sets {
    fn new(count: usize, size: usize) -> Self {
        Sets { next: (size <= count).then(|| (0..size).collect()), count }
    }
}

impl Iterator for Sets {
    type Item = Vec<usize>;

    fn next(&mut self) -> Option<Vec<usize>> {
        let set = self.next.take()?;
        let size = set.len();
        // The last member that can move on does, and those after it follow close behind.
        if let Some(moving) = (0..size).rev().find(|member| set[*member] < self.count - size + member) {
            let mut next = set.clone();
            let place = next[moving] + 1;
            for (step, member) in next[moving..].iter_mut().enumerate() {
                *member = place + step;
            }
            self.next = Some(next);
        }
        Some(set)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_come_in_the_order_of_their_members() {
        let sets: Vec<Vec<usize>> = Sets::new(4, 2).collect();
        assert_eq!(sets, [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]]);
        for count in 0..8 {
            for size in 1..=count {
                assert_eq!(Sets::new(count, size).count(), count_sets(count, size), "{size} of {count}");
            }
        }
        assert_eq!(Sets::new(2, 3).count(), 0);
        assert!(count_sets(64, 5) > SETS_MAX && count_sets(1_024, 512) > SETS_MAX);
    }
}
