/** What Streamlit hands to the default export of a component's script, at each run of its page and change of theme. */
interface StreamlitComponent<Data> {
  parentElement: HTMLElement | ShadowRoot;
  data: Data;
  /** Runs the page again; the value is there in that run alone. */
  setTriggerValue(name: string, value: unknown): void;
}
