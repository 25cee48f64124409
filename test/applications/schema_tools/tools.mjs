// What schema tools of Node.js make of a database, and what they would change when
// they compare it with the same model again:
//
//   node tools.mjs create KIND   make the tables, in databases TOOL_KIND
//   node tools.mjs again KIND    print how many statements would change indexes
import { createRequire } from 'node:module';
import { MikroORM, EntitySchema as MikroEntity } from '@mikro-orm/postgresql';
import { pgTable, serial, text, integer, index, uniqueIndex } from 'drizzle-orm/pg-core';
import { drizzle } from 'drizzle-orm/node-postgres';

const require = createRequire(import.meta.url);
const { pushSchema } = require('drizzle-kit/api');
const { Sequelize, DataTypes } = require('sequelize');
const { DataSource, EntitySchema } = require('typeorm');
const { Pool } = require('pg');

const [, , action, kind] = process.argv;
const host = process.env.PGHOST;
const port = Number(process.env.PGPORT);
const user = process.env.PGUSER;

async function typeorm(database) {
	const statements = [];
	const ignored = () => {};
	const source = new DataSource({
		type: 'postgres', host, port, username: user, database, installExtensions: false, logging: true,
		logger: {
			logQuery: query => statements.push(query), logQueryError: ignored, logQuerySlow: ignored,
			logSchemaBuild: ignored, logMigration: ignored, log: ignored,
		},
		entities: [
			new EntitySchema({
				name: 'author', indices: [{ name: 'author_name', columns: ['name'] }],
				columns: { id: { type: 'int', primary: true, generated: true }, email: { type: 'varchar', unique: true }, name: { type: 'varchar' } },
			}),
			new EntitySchema({
				name: 'post', indices: [{ name: 'post_title', columns: ['title'], unique: true }],
				columns: { id: { type: 'int', primary: true, generated: true }, title: { type: 'varchar' } },
				relations: { author: { type: 'many-to-one', target: 'author', joinColumn: true } },
			}),
		],
	});
	await source.initialize();
	await source.synchronize();
	await source.destroy();
	return statements;
}

async function sequelize(database) {
	const statements = [];
	const connection = new Sequelize({
		dialect: 'postgres', host, port, username: user, database, logging: query => statements.push(query.replace(/^.*?: /, '')),
	});
	const author = connection.define('author', { email: { type: DataTypes.STRING, unique: true }, name: DataTypes.STRING },
		{ indexes: [{ name: 'author_name', fields: ['name'] }] });
	const post = connection.define('post', { title: DataTypes.STRING },
		{ indexes: [{ name: 'post_title', unique: true, fields: ['title'] }] });
	post.belongsTo(author);
	await connection.sync({ alter: true });
	await connection.close();
	return statements;
}

async function mikro_orm(database) {
	const author = new MikroEntity({
		name: 'Author', properties: {
			id: { type: 'number', primary: true, autoincrement: true },
			email: { type: 'string', unique: true }, name: { type: 'string', index: true },
		},
	});
	const post = new MikroEntity({
		name: 'Post', properties: {
			id: { type: 'number', primary: true }, title: { type: 'string', unique: true },
			author: { kind: 'm:1', entity: () => 'Author' },
		},
	});
	const orm = await MikroORM.init({
		entities: [author, post], dbName: database, host, port, user, schemaGenerator: { ignoreSchema: ['hybrid'] },
	});
	const statements = (await orm.schema.getUpdateSchemaSQL()).split(/;\s*/);
	try {
		await orm.schema.update();
	} finally {
		await orm.close(true);
	}
	return statements;
}

async function drizzle_kit(database) {
	const author = pgTable('author', { id: serial('id').primaryKey(), email: text('email').unique(), name: text('name') },
		table => [index('author_name').on(table.name)]);
	const post = pgTable('post', { id: serial('id').primaryKey(), title: text('title'), author: integer('author').references(() => author.id) },
		table => [uniqueIndex('post_title').on(table.title)]);
	const pool = new Pool({ host, port, user, database });
	const { statementsToExecute, apply } = await pushSchema({ author, post }, drizzle(pool), ['public']);
	await apply();
	await pool.end();
	return statementsToExecute;
}

for (const [name, tool] of Object.entries({ typeorm, sequelize, mikro_orm, drizzle_kit })) {
	try {
		const statements = await tool(`${name}_${kind}`);
		if (action === 'again') {
			console.log(`${name}: ${statements.filter(query => /^(create.* index|drop index|.* drop constraint .*(_pkey|_unique))/i.test(query)).length}`);
		}
	} catch (error) {
		console.log(`${name}: ${error.message.replace(/\n[^]*/, '')}`);
	}
}
process.exit(0);
