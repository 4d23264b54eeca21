// Pictures follow the colours of the page, also where they differ from those of the system.
function followColours() {
  const dark = document.body.dataset.mdColorScheme === "slate"
  for (const source of document.querySelectorAll("picture > source[media]")) {
    source.media = dark ? "all" : "not all"
  }
}
followColours()
new MutationObserver(followColours).observe(document.body, {
  attributeFilter: ["data-md-color-scheme"],
})
