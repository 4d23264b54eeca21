/**
 * Links within the page, in a frame that has no address of its own, as in a notebook: there the
 * browser takes "#slides" for a place on the page around the frame.
 */
export function startFragments(): void {
  const without = (address: string): string => address.replace(/#.*$/, "");
  if (without(document.baseURI) === without(location.href)) return;
  document.addEventListener("click", (event) => {
    const link = event.target instanceof Element ? event.target.closest("a[href^='#']") : null;
    if (!link) return;
    event.preventDefault();
    location.hash = link.getAttribute("href")!;
  });
}
