// Parts of a component's HTML, found by what they must be.

/**
 * The one element that the selector names; an error where it is not there or of another kind.
 * @template {Element} T
 * @param {ParentNode} root
 * @param {string} selector
 * @param {new () => T} kind
 * @returns {T}
 */
export function part(root, selector, kind) {
  const found = root.querySelector(selector);
  if (!(found instanceof kind)) throw new Error(`there is no ${kind.name} at ${selector}`);
  return found;
}
