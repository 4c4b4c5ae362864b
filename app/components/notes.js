import { part } from "./parts.js";

/** A text, or a kind of node and what is in it. @typedef {string | [kind: string, within: Node_[]]} Node_ */
/** @typedef {{ id: number, body: Node_[], said: string, can: boolean }} Note */

/** Kinds of nodes and the elements that show them: there are no others, so that no note makes a link or a picture. */
const ELEMENTS = /** @type {const} */ ({
  p: "p",
  h: "h4",
  ul: "ul",
  ol: "ol",
  li: "li",
  blockquote: "blockquote",
  pre: "pre",
  code: "code",
  strong: "strong",
  em: "em",
  del: "del",
  br: "br",
  address: "span",
});

/** @param {Node_} node @returns {Node | string} */
function shown(node) {
  if (typeof node === "string") return node; // which becomes text
  const [kind, within] = node;
  const element = document.createElement(ELEMENTS[/** @type {keyof typeof ELEMENTS} */ (kind)] ?? "span");
  if (kind === "address") element.className = "address";
  element.append(...within.map(shown));
  return element;
}

/** @param {StreamlitComponent<Note[]>} component */
export default function ({ parentElement, data, setTriggerValue }) {
  part(parentElement, ".notes", HTMLDivElement).replaceChildren(
    ...data.map((note) => {
      const element = document.createElement("div");
      element.className = "note";
      element.setAttribute("role", "listitem");
      const body = document.createElement("div");
      body.className = "body";
      body.append(...note.body.map(shown));
      const said = document.createElement("div");
      said.className = "said";
      said.append(note.said);
      for (const act of note.can ? ["edit", "delete"] : []) {
        const button = document.createElement("button");
        button.type = "button";
        button.textContent = act === "edit" ? "Edit" : "Delete";
        button.setAttribute("aria-label", `${button.textContent} the note of ${note.said}`);
        button.onclick = () => setTriggerValue("asked", { act, id: note.id });
        said.append(button);
      }
      element.append(body, said);
      return element;
    }),
  );
}
