//! Makes a history shorter, as long as it still shows a difference.

/// Lets steps happen: which one shows a difference, and what it is.
type Replay<'a, S> = dyn FnMut(&[S]) -> Option<(usize, String)> + 'a;

/// Leaves out as many steps as it can, first by halves, then by ever smaller parts, until it has tried so many.
pub(crate) fn shrink<S: Clone>(
    mut steps: Vec<S>,
    replay: &mut Replay<'_, S>,
    budget: usize,
) -> (Vec<S>, String) {
    let Some((last, mut difference)) = replay(&steps) else {
        return (steps, "a difference that does not show when the steps are repeated".to_owned());
    };
    steps.truncate(last + 1);
    let mut tried = 0;
    let mut size = steps.len().div_ceil(2);
    loop {
        let before = steps.len();
        // From the back: what comes last mostly matters, what it builds on often does not any more.
        let mut end = steps.len();
        while end > 0 && tried < budget {
            let begin = end.saturating_sub(size);
            let shorter: Vec<S> = [&steps[..begin], &steps[end..]].concat();
            tried += shorter.len();
            if let Some((last, found)) = replay(&shorter) {
                difference = found;
                steps = shorter;
                steps.truncate(last + 1);
            }
            end = begin.min(steps.len());
        }
        if tried >= budget || (size == 1 && steps.len() == before) {
            return (steps, difference);
        }
        if size > 1 {
            size = size.div_ceil(2);
        }
    }
}
