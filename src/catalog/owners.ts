/** Who owns a URI: a function of the config and of what is known of the lists, not of history, so that replicas agree. */
import type { Found } from './catalog.ts';
import type { Entry } from './entry.ts';
import { type Member, offers } from './listing.ts';
import type { Merged } from './merge.ts';
import { aliasOf, openAlias } from './uri-alias.ts';
import { templateTest } from './uri-template.ts';

export interface OwnersOptions {
  /** In the order of the config. */
  members(): readonly Member[];
  member(name: string): Member | undefined;
  merged(kind: 'resources' | 'templates'): Merged;
}

type Test = ((uri: string) => boolean) | undefined;

const hasResources = ({ upstream: { profile } }: Member): boolean =>
  profile !== undefined && offers(profile, 'resources');

const foundAs = (member: Member, localKey: string, entry?: Entry): Found => ({
  kind: 'found',
  member,
  localKey,
  entry,
});

export class UriOwners {
  readonly #options: OwnersOptions;
  readonly #tests = new WeakMap<Entry, { readonly test: Test }>();

  constructor(options: OwnersOptions) {
    this.#options = options;
  }

  /** The first that lists it. */
  listed(uri: string): Found | undefined {
    const entry = this.#options.merged('resources').table.get(uri);
    const member = entry && this.#options.member(entry.upstream);
    return entry === undefined || member === undefined ? undefined : foundAs(member, entry.localKey, entry);
  }

  /** The first that lists it, else the one that an alias names, else the first whose template fits, else the only one with resources. */
  find(uri: string): Found | undefined {
    return this.listed(uri) ?? this.#byAlias(uri) ?? this.#byTemplate(uri) ?? this.#onlyOne(uri);
  }

  /** The URI of an upstream as it leaves, so that it leads back: an alias where another is its owner. */
  outward(uri: string, upstream: string): string {
    const member = this.#options.member(upstream);
    if (member === undefined || !this.mayAlias(member)) return uri;
    if (this.find(uri)?.member.server.name === upstream) return uri;
    return aliasOf({ upstream, uri }) ?? uri;
  }

  /** Whether a URI of this member can be another's. */
  mayAlias(member: Member): boolean {
    return this.#options.members().length > 1 && hasResources(member);
  }

  #byAlias(uri: string): Found | undefined {
    const opened = openAlias(uri);
    const member = opened && this.#options.member(opened.upstream);
    return opened === undefined || member === undefined ? undefined : foundAs(member, opened.uri);
  }

  #byTemplate(uri: string): Found | undefined {
    for (const entry of this.#options.merged('templates').entries) {
      const member = this.#options.member(entry.upstream);
      if (member !== undefined && this.#testOf(entry)?.(uri) === true) return foundAs(member, uri);
    }
    return undefined;
  }

  #onlyOne(uri: string): Found | undefined {
    const [member, ...others] = this.#options.members().filter(hasResources);
    return member === undefined || others.length > 0 ? undefined : foundAs(member, uri);
  }

  #testOf(entry: Entry): Test {
    const known = this.#tests.get(entry) ?? { test: templateTest(entry.localKey) };
    this.#tests.set(entry, known);
    return known.test;
  }
}
