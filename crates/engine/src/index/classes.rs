//! Which classes are kept, and how the class of a pod is found. Hot.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use supercargo_model::Pod;

use super::class::{Class, ClassKey, Hashed};
use super::recipe::Recipe;
use super::resolving::Resolved;
use super::slots::Slots;
use super::{Index, Question};

/// Where the parts of a pod are kept that its class is known by.
pub(super) type Addresses = [usize; 6];

/// The classes that are kept.
#[derive(Default)]
pub(super) struct Classes {
    /// Boxed, because a class is taken out of the list while it is worked with.
    pub(super) list: Slots<Box<Class>>,
    pub(super) by_key: FxHashMap<Hashed<ClassKey>, usize>,
    /// Classes by where the parts of their pods are kept. The pods are held so that the addresses stay theirs.
    by_address: FxHashMap<Addresses, (usize, Arc<Pod>)>,
    /// The class of the last pod: pods like one another come one after the other.
    last: Option<LastClass>,
    /// What plugins said that have their own word on which pods are alike, and a number for it.
    alike: FxHashMap<Vec<u64>, usize>,
    /// The last of those numbers. None is used twice, because addresses may outlive what they were found with.
    alike_numbers: usize,
    /// At most so many classes have planes of their own.
    pub(super) with_planes: usize,
}

/// The class of the last pod.
struct LastClass {
    /// Where the pod's parts are kept.
    address: Addresses,
    number: usize,
    /// Whether the parts of a pod are all that its class is found by: no plugin has its own word on which pods are alike, and none
    /// says what such pods come to.
    is_by_parts: bool,
}

impl Index {
    /// The number of the pod's class, which is perhaps out of date.
    pub(super) fn find_class(
        &mut self,
        question: &Question<'_>,
        mut address: Addresses,
        resolved: Option<&Resolved>,
    ) -> usize {
        let Question { profile_number, pod, .. } = question;
        let recipe = self.recipe(question);
        let mut alike = if recipe.has_alike() { recipe.alike(pod, |_| true) } else { Vec::new() };
        alike.extend(resolved.into_iter().flat_map(|resolved| resolved.numbers(|_| true)));
        let is_by_parts = alike.is_empty() && recipe.resolves_by_parts;
        address[0] += self.recipes.len() * self.classes.alike_number(&alike);
        let known = match &self.classes.last {
            Some(last) if last.address == address => Some(last.number),
            _ => self.classes.by_address.get(&address).map(|(number, _)| *number),
        };
        let number = match known {
            Some(number) => number,
            None => {
                self.make_room();
                let key = ClassKey::of(*profile_number, pod, self.recipe(question).fields, alike);
                let number = match self.classes.by_key.get(&key) {
                    Some(number) => *number,
                    None => {
                        let class = self.compile(question, resolved);
                        let number = self.classes.list.insert(class);
                        self.classes.by_key.insert(key, number);
                        number
                    }
                };
                self.classes.by_address.insert(address, (number, (*pod).clone()));
                number
            }
        };
        // Whatever room was made, this pod is among those that are held.
        self.classes.last = Some(LastClass { address, number, is_by_parts });
        number
    }

    /// Works a class out once more if it is out of date.
    pub(super) fn renew_class(
        &mut self,
        question: &Question<'_>,
        number: usize,
        resolved: Option<&Resolved>,
    ) {
        let class = self.classes.list.get_mut(number).expect("classes in the maps are in the list");
        if !class.is_current(question.context.cluster, &self.counting) {
            // What the old and the new one both count is not counted anew.
            let new = self.compile(question, resolved);
            let class = self.classes.list.get_mut(number).expect("it was just there");
            std::mem::replace(class, new).release(&mut self.counting);
        }
    }

    fn recipe(&self, question: &Question<'_>) -> &Arc<Recipe> {
        self.recipes[question.profile_number].as_ref().expect("without a recipe nothing is looked up")
    }

    fn compile(&mut self, question: &Question<'_>, resolved: Option<&Resolved>) -> Box<Class> {
        let recipe = self.recipe(question).clone();
        let nothing = Resolved::default();
        let resolved = resolved.unwrap_or(&nothing);
        let mut class = Class::compile(question, &recipe, resolved, &mut self.counting);
        self.statistics.classes_made += 1;
        class.generation = self.statistics.classes_made;
        Box::new(class)
    }

    /// Drops what was not used for longest, where there is too much.
    fn make_room(&mut self) {
        if self.classes.by_address.len() >= self.limits.addresses {
            self.classes.by_address.clear();
            self.classes.alike.clear();
        }
        if self.classes.by_key.len() >= self.limits.classes {
            let mut used: Vec<u64> = self.classes.list.values().map(|class| class.last_used).collect();
            used.sort_unstable();
            let oldest_kept = used[used.len() / 2];
            for class in self.classes.list.remove_unless(|class| class.last_used >= oldest_kept) {
                class.release(&mut self.counting);
                self.statistics.classes_dropped += 1;
            }
            let list = &self.classes.list;
            self.classes.by_key.retain(|_, number| list.get(*number).is_some());
            self.classes.by_address.retain(|_, (number, _)| list.get(*number).is_some());
        }
    }
}

impl Classes {
    /// The class of the pods whose parts are kept there, if they came last and these are all that their class is found by.
    #[inline]
    pub(super) fn last_by_parts(&self, address: &Addresses) -> Option<usize> {
        self.last.as_ref().filter(|last| last.is_by_parts && last.address == *address).map(|last| last.number)
    }

    /// A number for what plugins say about which pods are alike; 0 if none says anything.
    fn alike_number(&mut self, alike: &[u64]) -> usize {
        if alike.is_empty() {
            return 0;
        }
        if let Some(number) = self.alike.get(alike) {
            return *number;
        }
        self.alike_numbers += 1;
        self.alike.insert(alike.to_vec(), self.alike_numbers);
        self.alike_numbers
    }
}

/// Where the parts of the pod are kept, and the number of its profile.
pub(super) fn address_of(question: &Question<'_>) -> Addresses {
    let Question { profile_number, pod, .. } = question;
    [
        *profile_number,
        pod.spec.address(),
        pod.labels.address(),
        pod.annotations.address(),
        Arc::as_ptr(&pod.namespace).addr(),
        pod.controller.as_ref().map_or(0, supercargo_model::Interned::address),
    ]
}
