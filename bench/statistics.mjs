/** Medians and spreads of what was measured in rounds. */

/** The value below which this share of the values lies, between neighbours in proportion; NaN of none. */
export function quantile(values, share) {
  const sorted = values.filter(Number.isFinite).sort((a, b) => a - b);
  if (sorted.length === 0) return Number.NaN;
  const at = share * (sorted.length - 1);
  const below = Math.floor(at);
  const above = Math.min(below + 1, sorted.length - 1);
  return sorted[below] + (sorted[above] - sorted[below]) * (at - below);
}

/** The median, and the quartiles as the spread. */
export function summary(values) {
  return {
    median: quantile(values, 0.5),
    low: quantile(values, 0.25),
    high: quantile(values, 0.75),
    count: values.filter(Number.isFinite).length,
  };
}

/** The summary of the ratios of two series that were taken in turn, round by round. */
export function ratios(values, references) {
  return summary(values.map((value, round) => value / references[round]));
}

/** 'goal', 'floor' or 'below': what a value reaches of what is owed and aimed at, where more or less is better. */
export function verdict(value, { floor, goal, better }) {
  if (!Number.isFinite(value)) return 'below';
  const reaches = (mark) => (better === 'more' ? value >= mark : value <= mark);
  if (reaches(goal)) return 'goal';
  return reaches(floor) ? 'floor' : 'below';
}

/** The things in an order that another one begins with each round, so that none is always first. */
export function inTurn(things, round) {
  return things.map((_, index) => things[(index + round) % things.length]);
}
