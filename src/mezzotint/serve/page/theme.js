// Light or dark, before the first paint: a classic script, so that the page does not flash.
// Without a choice the system's preference stands.
(() => {
  const KEY = "mezzotint.theme";
  const root = document.documentElement;
  try {
    const kept = JSON.parse(localStorage.getItem(KEY));
    if (kept === "light" || kept === "dark") root.dataset.theme = kept;
  } catch {
    // Forbidden or not ours: the system decides.
  }
})();
