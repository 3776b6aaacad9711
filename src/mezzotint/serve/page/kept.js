// What the page remembers: choices for good (local), the work at hand for the tab (session).

function area(name) {
  try {
    return window[name];
  } catch {
    return null; // storage is forbidden: nothing is remembered
  }
}

export function recall(key, fallback, name = "localStorage") {
  try {
    const text = area(name)?.getItem(`mezzotint.${key}`);
    return text == null ? fallback : JSON.parse(text);
  } catch {
    return fallback;
  }
}

export function remember(key, value, name = "localStorage") {
  try {
    area(name)?.setItem(`mezzotint.${key}`, JSON.stringify(value));
  } catch {
    // Full or forbidden: the page works on without.
  }
}
