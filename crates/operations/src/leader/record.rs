//! What a Lease says about who leads.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

/// The part of a Lease that an election reads and writes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeaseRecord {
    /// Who holds the lease; empty if nobody does.
    pub holder: String,
    /// For how many seconds after it was last seen to change nobody else may take the lease.
    pub lease_duration_seconds: i32,
    /// Since when the holder has held it, by the holder's clock.
    pub acquire_time: Option<Timestamp>,
    /// When the holder renewed it last, by the holder's clock. Only a change of it tells others something.
    pub renew_time: Option<Timestamp>,
    /// How often the lease went from one holder to another.
    pub transitions: i32,
}

impl LeaseRecord {
    /// Reads the record in a Lease. What is absent or of the wrong type counts as not written.
    pub fn read(lease: &Value) -> Self {
        let spec = &lease["spec"];
        let number =
            |name: &str| spec[name].as_i64().and_then(|number| i32::try_from(number).ok()).unwrap_or(0);
        let time = |name: &str| spec[name].as_str().and_then(|text| text.parse().ok());
        LeaseRecord {
            holder: spec["holderIdentity"].as_str().unwrap_or_default().to_owned(),
            lease_duration_seconds: number("leaseDurationSeconds"),
            acquire_time: time("acquireTime"),
            renew_time: time("renewTime"),
            transitions: number("leaseTransitions"),
        }
    }

    /// Writes the record into a Lease. Whatever else the Lease holds stays, whether we know of it or not.
    pub fn write(&self, lease: &mut Value) {
        if !lease.is_object() {
            *lease = Value::Object(Map::new());
        }
        let spec = &mut lease["spec"];
        if !spec.is_object() {
            *spec = Value::Object(Map::new());
        }
        spec["holderIdentity"] = json!(self.holder);
        spec["leaseDurationSeconds"] = json!(self.lease_duration_seconds);
        spec["leaseTransitions"] = json!(self.transitions);
        for (name, time) in [("acquireTime", self.acquire_time), ("renewTime", self.renew_time)] {
            match time {
                Some(time) => spec[name] = json!(micro_time(time)),
                None => {
                    if let Some(spec) = spec.as_object_mut() {
                        spec.remove(name);
                    }
                }
            }
        }
    }
}

/// A time as `MicroTime` has it: always six digits after the point, which the API server insists on.
pub(crate) fn micro_time(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
}
