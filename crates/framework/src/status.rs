//! What a plugin answers.

use std::borrow::Cow;

/// The answer of a plugin: a code, and the reasons that people get to read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    code: Code,
    reasons: Vec<Cow<'static, str>>,
    plugin: Option<&'static str>,
}

/// What a [`Status`] means, and what becomes of the pod.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Code {
    /// All is well.
    #[default]
    Success,
    /// Something broke. The attempt is over; the pod is tried again after a back-off.
    Error,
    /// The pod does not fit now. Evicting pods may help, so preemption looks at the node; the pod waits for an
    /// event that the plugin reacts to.
    Unschedulable,
    /// The pod does not fit, and evicting pods would not change that: preemption leaves the node alone.
    UnschedulableAndUnresolvable,
    /// The plugin has nothing to say about this pod: its other methods are not called in this cycle. For Bind: the
    /// next Bind plugin is asked.
    Skip,
    /// The pod does not fit until something outside the scheduler has happened. It is tried again at once, without
    /// back-off, when the plugin's event comes.
    Pending,
}

impl Status {
    /// All is well.
    pub const fn success() -> Self {
        Status { code: Code::Success, reasons: Vec::new(), plugin: None }
    }

    /// The plugin has nothing to say about this pod.
    pub const fn skip() -> Self {
        Status { code: Code::Skip, reasons: Vec::new(), plugin: None }
    }

    /// The pod does not fit, but would if some pods went.
    pub fn unschedulable(reason: impl Into<Cow<'static, str>>) -> Self {
        Status::new(Code::Unschedulable, [reason.into()])
    }

    /// The pod does not fit, and evicting pods would not help.
    pub fn unresolvable(reason: impl Into<Cow<'static, str>>) -> Self {
        Status::new(Code::UnschedulableAndUnresolvable, [reason.into()])
    }

    /// Something broke.
    pub fn error(reason: impl Into<Cow<'static, str>>) -> Self {
        Status::new(Code::Error, [reason.into()])
    }

    /// Any answer.
    pub fn new(code: Code, reasons: impl IntoIterator<Item = Cow<'static, str>>) -> Self {
        Status { code, reasons: reasons.into_iter().collect(), plugin: None }
    }

    /// The same answer, with the name of the plugin that gave it.
    #[must_use]
    pub fn from_plugin(self, plugin: &'static str) -> Self {
        Status { plugin: Some(plugin), ..self }
    }

    /// What it means.
    pub fn code(&self) -> Code {
        self.code
    }

    /// Why, in words for people.
    pub fn reasons(&self) -> &[Cow<'static, str>] {
        &self.reasons
    }

    /// Who said so.
    pub fn plugin(&self) -> Option<&'static str> {
        self.plugin
    }

    /// The reasons in one line.
    pub fn message(&self) -> String {
        self.reasons.join(", ")
    }

    /// Whether all is well.
    pub fn is_success(&self) -> bool {
        self.code == Code::Success
    }

    /// Whether the plugin has nothing to say.
    pub fn is_skip(&self) -> bool {
        self.code == Code::Skip
    }

    /// Whether the pod does not fit: an answer like any other, not a failure.
    pub fn is_rejected(&self) -> bool {
        matches!(self.code, Code::Unschedulable | Code::UnschedulableAndUnresolvable | Code::Pending)
    }
}

impl Code {
    /// The name that Kubernetes gives the code.
    pub const fn name(self) -> &'static str {
        match self {
            Code::Success => "Success",
            Code::Error => "Error",
            Code::Unschedulable => "Unschedulable",
            Code::UnschedulableAndUnresolvable => "UnschedulableAndUnresolvable",
            Code::Skip => "Skip",
            Code::Pending => "Pending",
        }
    }
}

#[cfg(test)]
mod tests;
