// Pictures follow the colours of the page, also where they differ from those of the system.
const DARK = "(prefers-color-scheme: dark)"
function followColours() {
  const dark = document.body.dataset.mdColorScheme === "slate"
  for (const source of document.querySelectorAll("picture > source[media]")) {
    const own = (source.dataset.media ??= source.media)
    if (!own.includes(DARK)) continue
    source.media = dark ? own.replace(` and ${DARK}`, "").replace(DARK, "all") : "not all"
  }
}
followColours()
new MutationObserver(followColours).observe(document.body, {
  attributeFilter: ["data-md-color-scheme"],
})
