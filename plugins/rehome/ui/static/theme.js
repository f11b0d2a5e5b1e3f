"use strict";
// Light or dark, as Airflow shows itself; by itself, as the system does. Runs before the first paint.
(() => {
  const own = document.documentElement;
  const host = (() => {
    try {
      return window.parent !== window ? window.parent.document.documentElement : null;
    } catch {
      return null; // framed by another origin
    }
  })();
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  const apply = () => {
    const stored = localStorage.getItem("theme");
    const dark = host ? host.classList.contains("dark") : stored === "dark" || (stored !== "light" && system.matches);
    own.dataset.theme = dark ? "dark" : "light";
    window.dispatchEvent(new Event("rehome-theme"));
  };
  apply();
  system.addEventListener("change", apply);
  if (host) new MutationObserver(apply).observe(host, { attributes: true, attributeFilter: ["class"] });
})();
