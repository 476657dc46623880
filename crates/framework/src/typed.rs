//! A map from types to values, cheap to clone: clones share a value until one of them changes it.

use std::any::{Any, TypeId};
use std::fmt;
use std::sync::Arc;

#[derive(Clone, Default)]
pub(crate) struct TypedMap {
    values: Vec<(TypeId, Arc<dyn Value>)>,
}

trait Value: Any + Send + Sync {
    fn clone_value(&self) -> Arc<dyn Value>;
    fn type_name(&self) -> &'static str;
}

impl<T: Clone + Send + Sync + 'static> Value for T {
    fn clone_value(&self) -> Arc<dyn Value> {
        Arc::new(self.clone())
    }

    fn type_name(&self) -> &'static str {
        std::any::type_name::<T>()
    }
}

impl TypedMap {
    pub(crate) fn put<T: Clone + Send + Sync + 'static>(&mut self, value: T) {
        let value: Arc<dyn Value> = Arc::new(value);
        match self.position::<T>() {
            Some(index) => self.values[index].1 = value,
            None => self.values.push((TypeId::of::<T>(), value)),
        }
    }

    pub(crate) fn get<T: Clone + Send + Sync + 'static>(&self) -> Option<&T> {
        let value: &dyn Any = &*self.values[self.position::<T>()?].1;
        value.downcast_ref()
    }

    pub(crate) fn get_mut<T: Clone + Send + Sync + 'static>(&mut self) -> Option<&mut T> {
        let index = self.position::<T>()?;
        let value = &mut self.values[index].1;
        if Arc::get_mut(value).is_none() {
            *value = (**value).clone_value();
        }
        let value: &mut dyn Any = Arc::get_mut(value).expect("a fresh clone is shared with nobody");
        value.downcast_mut()
    }

    pub(crate) fn remove<T: 'static>(&mut self) {
        self.values.retain(|(id, _)| *id != TypeId::of::<T>());
    }

    /// Whether both hold the same value of a type, and not only an equal one; or none both.
    pub(crate) fn is_same<T: 'static>(&self, other: &Self) -> bool {
        let of = |map: &Self| map.position::<T>().map(|index| map.values[index].1.clone());
        match (of(self), of(other)) {
            (None, None) => true,
            (Some(own), Some(other)) => Arc::ptr_eq(&own, &other),
            _ => false,
        }
    }

    // A cycle holds about a dozen values: looking through them beats hashing.
    fn position<T: 'static>(&self) -> Option<usize> {
        self.values.iter().position(|(id, _)| *id == TypeId::of::<T>())
    }
}

impl fmt::Debug for TypedMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.values.iter().map(|(_, value)| (**value).type_name())).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clones_share_until_one_writes() {
        let mut original = TypedMap::default();
        original.put(vec![1]);
        original.put("other".to_owned());
        let mut copy = original.clone();
        copy.get_mut::<Vec<i32>>().expect("was put").push(2);
        assert_eq!(original.get::<Vec<i32>>(), Some(&vec![1]));
        assert_eq!(copy.get::<Vec<i32>>(), Some(&vec![1, 2]));
        assert!(std::ptr::eq(
            original.get::<String>().expect("was put"),
            copy.get::<String>().expect("was put")
        ));
        copy.remove::<String>();
        assert_eq!(copy.get::<String>(), None);
    }
}
