// A text in parts: words and sentences in any language, edits of ranges. Positions are code
// points, as the API counts them; JavaScript's own are not.

/** Ranges {start, end, text, wordLike} that make up `text`. */
export function split(text, granularity) {
  let at = 0;
  const found = new Intl.Segmenter(undefined, { granularity }).segment(text);
  return Array.from(found, ({ segment, isWordLike }) => {
    const start = at;
    at += [...segment].length;
    return { start, end: at, text: segment, wordLike: isWordLike ?? true };
  });
}

export const slice = (text, start, end) => [...text].slice(start, end).join("");

const overlap = (a, b) => a.start < b.end && b.start < a.end;

/** Edits {start, end, text} with a new one put in; it replaces those that it overlaps. */
export function edited(edits, edit) {
  return [...edits.filter((other) => !overlap(other, edit)), edit].sort((a, b) => a.start - b.start);
}

export const without = (ranges, range) => ranges.filter((other) => !overlap(other, range));

/** What stands at `range` after `edits`. */
export function now(text, range, edits) {
  let [made, at] = ["", range.start];
  for (const edit of edits.filter((other) => overlap(other, range))) {
    made += slice(text, at, Math.max(at, edit.start)) + edit.text;
    at = Math.max(at, edit.end);
  }
  return made + slice(text, at, Math.max(at, range.end));
}

/** The range grown over the edits that it cuts. */
export function whole(range, edits) {
  const cut = edits.filter((other) => overlap(other, range));
  return {
    start: Math.min(range.start, ...cut.map(({ start }) => start)),
    end: Math.max(range.end, ...cut.map(({ end }) => end)),
  };
}

/** The smallest edit with the same outcome: words that begin and end it alike are left out. */
export function trimmed(text, { start, end, text: made }) {
  const [old, next] = [split(slice(text, start, end), "word"), split(made, "word")];
  const most = Math.min(old.length, next.length);
  const same = (a, b) => a.text === b.text;
  let front = 0;
  while (front < most && same(old[front], next[front])) front++;
  let back = 0;
  while (back < most - front && same(old.at(-1 - back), next.at(-1 - back))) back++;
  const kept = next.slice(front, next.length - back).map((part) => part.text);
  return {
    start: start + (old[front]?.start ?? end - start),
    end: start + (old.at(-1 - back)?.end ?? 0),
    text: kept.join(""),
  };
}
